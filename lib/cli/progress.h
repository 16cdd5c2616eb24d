/* One line on a terminal's stderr that says how far long work has come; nothing elsewhere. */
#ifndef RV_CLI_PROGRESS_H
#define RV_CLI_PROGRESS_H

#include <stddef.h>

/* Replaces the line: "program: 3/97 what".  `what` may be NULL. */
void rv_cli_progress(size_t done, size_t count, const char *what);
/* Takes it away: before anything else is written to the terminal, and at the end. */
void rv_cli_progress_clear(void);

#endif
