#include "lib/process/loop.h"

#include <errno.h>
#include <unistd.h>

#include "lib/base/clock.h"

/* What is ready together is told together: the rows of a turn share one write and one sync. */
#define EVENTS_MAX 256

int rv_loop_init(struct rv_loop *loop, struct rv_error *err)
{
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll < 0)
		return rv_error_set(err, RV_E_IO, errno, "epoll_create1");
	return 0;
}

void rv_loop_release(struct rv_loop *loop)
{
	if (loop->epoll >= 0)
		(void)close(loop->epoll);
	loop->epoll = -1;
}

int rv_loop_add(struct rv_loop *loop, struct rv_watch *watch, int fd, uint32_t events, struct rv_error *err)
{
	struct epoll_event event = { .events = events, .data.ptr = watch };

	if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		return rv_error_set(err, RV_E_IO, errno, "epoll_ctl");
	watch->fd = fd;
	return 0;
}

void rv_loop_remove(struct rv_loop *loop, struct rv_watch *watch)
{
	if (watch->fd >= 0)
		(void)epoll_ctl(loop->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
	watch->fd = -1;
}

int rv_loop_turn(struct rv_loop *loop, int64_t deadline_ms, struct rv_error *err)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(loop->epoll, events, EVENTS_MAX, rv_clock_left_ms(deadline_ms));

	if (n < 0)
		return errno == EINTR ? 0 : rv_error_set(err, RV_E_IO, errno, "epoll_wait");
	for (int i = 0; i < n; i++) {
		struct rv_watch *watch = events[i].data.ptr;

		if (watch->fd >= 0) /* removed earlier in this very turn */
			watch->ready(watch, events[i].events);
	}
	return 0;
}
