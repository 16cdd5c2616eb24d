/*
 * A seccomp filter as a table: rules in, a classic BPF program out (seccomp(2), bpf(4)).
 *
 * The first rule for a number whose tests all hold decides; where none holds, the table's own action does.
 * Before any rule: another architecture ends the process (a 32-bit call number means something else), and
 * an x32 number is ENOSYS.  The numbers become a balanced tree, so that a call costs the logarithm of the
 * table and not its length.
 *
 * An argument is 64 bits to the filter, and often 32 to the kernel, which drops the rest.  A rule that
 * allows compares all 64 (mask RV_FILTER_ALL); a rule that denies a 32-bit argument must mask the upper
 * half away (RV_FILTER_INT), or adding 2^32 steps round it.
 */
#ifndef RV_SANDBOX_FILTER_H
#define RV_SANDBOX_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "lib/base/error.h"

#define RV_FILTER_ALL UINT64_MAX
#define RV_FILTER_INT ((uint64_t)UINT32_MAX)
#define RV_FILTER_TESTS 3
#define RV_FILTER_MAX 4096 /* BPF_MAXINSNS: the kernel takes no longer program */

#define RV_FILTER_ERRNO(number) (SECCOMP_RET_ERRNO | (uint32_t)(number))

/* What a value stands for that is known only when the filter is made. */
enum rv_filter_value { RV_VALUE_GIVEN = 0, RV_VALUE_SELF /* the own pid */, RV_VALUE_EXEC /* the exec descriptor */ };

/* (argument & mask) == value; mask 0: no test. */
struct rv_filter_test {
	unsigned argument; /* 0 to 5 */
	uint64_t mask;
	uint64_t value;
	enum rv_filter_value symbol; /* value is that instead */
};

struct rv_filter_rule {
	const char *name; /* as strace(1) prints it */
	uint32_t first;   /* call numbers, first to last */
	uint32_t last;
	uint32_t action;  /* SECCOMP_RET_ALLOW, RV_FILTER_ERRNO(E) */
	struct rv_filter_test tests[RV_FILTER_TESTS];
};

struct rv_filter {
	const struct rv_filter_rule *rules;
	size_t count;
	uint32_t otherwise; /* the action for what no rule decides */
};

struct rv_filter_values {
	uint64_t self;
	uint64_t exec;
};

/* Compiled.  `code` is the caller's and holds RV_FILTER_MAX instructions, so that a child that may not
 * allocate can do it.  Returns the length; -1 (errno E2BIG) where it does not fit. */
int rv_filter_compile(const struct rv_filter *filter, const struct rv_filter_values *values,
		      struct sock_filter *code);

/* Compiled once, for a process whose number is known before it is there: the second of a PID namespace. */
struct rv_filter_program {
	struct rv_filter_values values;
	int len;
	struct sock_filter code[RV_FILTER_MAX];
};

/* Load what was compiled; as below. */
int rv_filter_load_program(const struct sock_filter *code, int len);

/* Compile and load for the calling thread; needs no_new_privs.  -1 with errno. */
int rv_filter_load(const struct rv_filter *filter, const struct rv_filter_values *values);

#endif
