/*
 * One event loop over epoll(7): no thread per child, no polling.  A watch belongs to its owner and
 * stays valid until the turn in which it was removed is over.
 */
#ifndef RV_PROCESS_LOOP_H
#define RV_PROCESS_LOOP_H

#include <stdint.h>
#include <sys/epoll.h>

#include "lib/base/error.h"

struct rv_watch {
	int fd; /* borrowed; -1 when not watched */
	void (*ready)(struct rv_watch *watch, uint32_t events);
	void *owner;
};

struct rv_loop {
	int epoll; /* owned */
};

#define RV_WATCH_INIT { .fd = -1, .ready = NULL, .owner = NULL }

int rv_loop_init(struct rv_loop *loop, struct rv_error *err);
void rv_loop_release(struct rv_loop *loop);
int rv_loop_add(struct rv_loop *loop, struct rv_watch *watch, int fd, uint32_t events, struct rv_error *err);
void rv_loop_remove(struct rv_loop *loop, struct rv_watch *watch); /* before its descriptor is closed */

/* One turn: wait until something is ready or the monotonic instant has come; call what is ready. */
int rv_loop_turn(struct rv_loop *loop, int64_t deadline_ms, struct rv_error *err);

#endif
