/*
 * Short turns on the processor for those who have little to do and are waited for: a dispatch is a chain
 * of wake-ups between host, worker and tool, and on a busy machine each of them would stand behind a whole
 * turn of every tool of the other slots.  The share of the processor stays the same, and what such a
 * process starts has the usual turns again.
 */
#ifndef RV_PROCESS_SLICE_H
#define RV_PROCESS_SLICE_H

/* For this process, from Linux 6.12 on; where it cannot be had, nothing is lost but time. */
void rv_slice_shorten(void);

#endif
