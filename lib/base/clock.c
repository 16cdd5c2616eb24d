#include "lib/base/clock.h"

#include <limits.h>
#include <time.h>

static int64_t read_us(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now) != 0)
		return 0; /* cannot happen for the two clocks used here */
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t rv_clock_wall_ms(void)
{
	return read_us(CLOCK_REALTIME) / 1000;
}

int64_t rv_clock_mono_us(void)
{
	return read_us(CLOCK_MONOTONIC);
}

int64_t rv_clock_mono_ms(void)
{
	return rv_clock_mono_us() / 1000;
}

int rv_clock_left_ms(int64_t deadline_ms)
{
	int64_t left = deadline_ms - rv_clock_mono_ms();

	if (left <= 0)
		return 0;
	return left >= INT_MAX ? INT_MAX : (int)left + 1;
}

void rv_clock_pause_ms(int ms)
{
	struct timespec span = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000L };

	(void)nanosleep(&span, NULL);
}
