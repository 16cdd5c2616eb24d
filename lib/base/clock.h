/* Time.  Wall clock for rows and for people; the monotonic clock for every deadline. */
#ifndef RV_BASE_CLOCK_H
#define RV_BASE_CLOCK_H

#include <stdint.h>

int64_t rv_clock_wall_ms(void); /* milliseconds since 1970-01-01T00:00:00Z */
int64_t rv_clock_mono_ms(void); /* CLOCK_MONOTONIC, milliseconds */
int64_t rv_clock_mono_us(void);

/* Milliseconds left until a monotonic instant, for poll(2): 0 when past, capped at INT_MAX,
 * rounded up so that a wait never ends early. */
int rv_clock_left_ms(int64_t deadline_ms);

/* Sleep up to `ms`, ended early by a signal. */
void rv_clock_pause_ms(int ms);

#endif
