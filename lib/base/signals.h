/* Signal dispositions, where exec(2) would keep what a caller had ignored. */
#ifndef RV_BASE_SIGNALS_H
#define RV_BASE_SIGNALS_H

#include <stdint.h>

/* Every signal to its default, also libc's own two, which sigaction(3) leaves out and a parent may have ignored
 * (GNU make does).  For a child with memory of its own, before it runs something. */
void rv_signals_default(void);

/* The ignored ones as bits, signal 1 the lowest: SigIgn of proc(5); all bits where that cannot be read. */
uint64_t rv_signals_ignored(void);
/* The same for these alone: what else is not default an exec makes so. */
void rv_signals_default_of(uint64_t ignored);

/* TERM, INT and HUP become a descriptor (signalfd(2), not blocking) for this thread and those that it starts; one that was
 * ignored at the start (nohup) stays so: blocked, it would come all the same.  -1 with errno. */
int rv_signals_watch(void);
/* The same and SIGPIPE: a write that nobody reads is EPIPE then, and the descriptor tells of it. */
int rv_signals_watch_pipe(void);

#endif
