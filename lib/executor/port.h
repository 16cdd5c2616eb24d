/*
 * The two ends of a stream: lines in, bytes out, by a loop, on descriptors that are the caller's and keep
 * their flags (O_NONBLOCK would be everybody's who shares them).  A regular file cannot be watched
 * (epoll_ctl(2): EPERM) and never blocks for long: it is always ready.  A pipe is opened once more for the
 * replies, where that can be: this second descriptor has flags of its own, and does not block.  A pipe that long
 * lines go through is made larger, once (fcntl(2): F_SETPIPE_SZ): the fewer turns for both of its ends.
 */
#ifndef RV_EXECUTOR_PORT_H
#define RV_EXECUTOR_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/process/loop.h"

struct rv_inlet {
	struct rv_loop *loop;
	int fd;
	struct rv_watch watch;
	bool watchable;
	bool wanted;
	bool ended;
	bool large;             /* a long line has come */
	int errnum;             /* of a read that failed */
	struct rv_buffer bytes; /* what is not yet taken, from `at` on */
	size_t at;
	size_t searched;        /* no newline before this */
	uint64_t line;          /* the number of the line taken last */
};

void rv_inlet_init(struct rv_inlet *inlet, struct rv_loop *loop, int fd);
void rv_inlet_release(struct rv_inlet *inlet);
/* Want more input or not.  -1: it cannot be watched for a reason of the system's. */
int rv_inlet_want(struct rv_inlet *inlet, bool wanted, struct rv_error *err);
/* Is it ready without the loop (a regular file that is wanted)?  Then turn without waiting, and call this. */
bool rv_inlet_is_ready(const struct rv_inlet *inlet);
void rv_inlet_read(struct rv_inlet *inlet);
/* Is a whole line in hand?  Then no more is to be read: memory stays bounded by a chunk or a line. */
bool rv_inlet_has_line(struct rv_inlet *inlet);
/* The next whole line (at the end also one without its newline): true, and borrowed until the next read. */
bool rv_inlet_line(struct rv_inlet *inlet, struct rv_span *line);

struct rv_outlet {
	struct rv_loop *loop;
	int fd;
	struct rv_watch watch;
	bool watchable;
	bool prompt;            /* a write to `fd` never waits for a reader */
	bool own;               /* `fd` is ours to close */
	bool large;             /* so much was to be written that a pipe was made larger */
	int errnum;             /* of the write that failed: nothing more goes out */
	struct rv_buffer bytes; /* what is still to be written, from `at` on */
	size_t at;
};

void rv_outlet_init(struct rv_outlet *outlet, struct rv_loop *loop, int fd);
void rv_outlet_release(struct rv_outlet *outlet);
/* Take these bytes to be written; `bytes` is empty then (where nothing else waits, the memory of
 * a large one is taken). */
void rv_outlet_add(struct rv_outlet *outlet, struct rv_buffer *bytes);
size_t rv_outlet_pending(const struct rv_outlet *outlet);
/* Have it written: at once where that never waits, else watched while something is pending. */
int rv_outlet_turn(struct rv_outlet *outlet, struct rv_error *err);

#endif
