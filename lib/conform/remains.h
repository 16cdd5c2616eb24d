/* What a trial left running: found by the nonce in its command lines, named, and killed. */
#ifndef RV_CONFORM_REMAINS_H
#define RV_CONFORM_REMAINS_H

#include <stddef.h>

#include "lib/conform/check.h"

/* Living processes, but this one, whose command line holds `nonce`. */
size_t rv_remains_count(const char *nonce);

/* Name the processes with the nonce, then kill them and every descendant of this process. */
void rv_remains_end(const char *nonce, struct rv_note *named);

#endif
