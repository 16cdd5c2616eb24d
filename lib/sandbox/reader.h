/*
 * A process that only reads: it was given bytes on descriptor 0, says what it makes of them on descriptor 1, and needs
 * nothing else of this host.  What it parses may be written by an enemy, so all else is given up before the first byte.
 */
#ifndef RV_SANDBOX_READER_H
#define RV_SANDBOX_READER_H

#include <stdint.h>

struct rv_reader_limits {
	uint64_t cpu_seconds;   /* then SIGXCPU */
	uint64_t address_bytes; /* of memory, mapped in any way; not kept under a sanitizer, which maps terabytes */
};

enum rv_reader_step {
	RV_READER_READY = 0,
	RV_READER_PARENT, /* the process that started it is gone */
	RV_READER_DESCRIPTORS,
	RV_READER_LIMITS,
	RV_READER_PRIVILEGES,
	RV_READER_LANDLOCK,
	RV_READER_SECCOMP
};

const char *rv_reader_step_name(int step);

/*
 * For good: every descriptor but 0, 1 and 2 is closed; no new one, no file that grows, no core; processor time and memory
 * as said, or as the caller had less; the death of the parent, `parent`, is the own one; no new privileges; root becomes
 * 65534 without groups, and nobody has a capability; Landlock without any access, where this kernel has it; and calls that
 * an open descriptor, memory and the clock need, while any other one ends the process with SIGSYS.
 *
 * Where a user namespace has no such id, or a capability to change it was taken away before, root keeps its number, and
 * has of it what the other steps leave.  Everything that is loaded late must be there already.  One thread.  The step that
 * failed, with errno; then nothing may be read.
 */
int rv_reader_give_up(const struct rv_reader_limits *limits, int parent);

#endif
