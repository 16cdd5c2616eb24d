/* Signal dispositions, where exec(2) would keep what a caller had ignored. */
#ifndef RV_BASE_SIGNALS_H
#define RV_BASE_SIGNALS_H

/* Every signal to its default, also libc's own two, which sigaction(3) leaves out and a parent may have ignored
 * (GNU make does).  For a child with memory of its own, before it runs something. */
void rv_signals_default(void);

#endif
