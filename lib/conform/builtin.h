/*
 * The built-in adapter: the adapter contract of rv-conformance(7) spoken by rv-tools' own programs.
 * It becomes the program that answers (exec), so that what is killed or signalled is that program.
 */
#ifndef RV_CONFORM_BUILTIN_H
#define RV_CONFORM_BUILTIN_H

#include "lib/base/buffer.h"
#include "lib/base/error.h"

/* `words` are what follows the adapter's name, NULL-terminated.  Does not return where another program
 * answers; 0 with the answer in `out`; -1: RV_E_USAGE, RV_E_REQUEST, RV_E_IO. */
int rv_builtin_answer(char *const *words, struct rv_buffer *out, struct rv_error *err);

#endif
