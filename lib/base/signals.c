#include "lib/base/signals.h"

#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

void rv_signals_default(void)
{
	static const unsigned long action[16] = { 0 }; /* struct kernel_sigaction, all of it zero, on any machine */

	for (long number = 1; number < _NSIG; number++)
		(void)syscall(SYS_rt_sigaction, number, action, NULL, (size_t)(_NSIG / 8)); /* not KILL and STOP */
}
