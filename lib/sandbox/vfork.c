#include "lib/sandbox/vfork.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined __SANITIZE_ADDRESS__ && defined __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#ifdef __SANITIZE_ADDRESS__

pid_t rv_vfork(uint64_t namespaces, int (*child)(void *data), void *data)
{
	/* fork(3) takes locks of other threads */
	pid_t pid = (pid_t)syscall(SYS_clone, (unsigned long)namespaces | SIGCHLD, NULL, NULL, NULL, 0UL);

	if (pid == 0)
		_exit(child(data));
	return pid;
}

#else

#define STACK ((size_t)512 << 10) /* a compiled filter is 32 KiB of it; what is not touched is not there */

pid_t rv_vfork(uint64_t namespaces, int (*child)(void *data), void *data)
{
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	pid_t pid;
	int errnum;

	if (stack == MAP_FAILED)
		return -1;
	pid = clone(child, stack + STACK, (int)(namespaces | CLONE_VM | CLONE_VFORK | SIGCHLD), data);
	errnum = errno;
	(void)munmap(stack, STACK);
	errno = errnum;
	return pid;
}

#endif
