#include "lib/sandbox/filter.h"

#include <errno.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/audit.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000U
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "no system call table for this machine"
#endif

#define SPANS_MAX 1024   /* of equal treatment, over all call numbers */
#define PENDING_MAX 32   /* right halves that wait for their place: the depth of the tree */

/* A run of numbers that the same rules speak of, up to where the next one begins. */
struct span {
	uint32_t start;
	bool ruled; /* some rule speaks of it; else the table's own action holds */
};

struct out {
	struct sock_filter *code;
	size_t len;
};

static void emit(struct out *out, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	if (out->len < RV_FILTER_MAX)
		out->code[out->len] = (struct sock_filter)BPF_JUMP(code, k, jt, jf);
	out->len++; /* one that is too long is told by its length */
}

static void emit_load(struct out *out, size_t offset)
{
	emit(out, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void emit_return(struct out *out, uint32_t action)
{
	emit(out, BPF_RET | BPF_K, action, 0, 0);
}

/* ---- one number ---- */

static uint64_t value_of(const struct rv_filter_test *test, const struct rv_filter_values *values)
{
	switch (test->symbol) {
	case RV_VALUE_SELF:
		return values->self;
	case RV_VALUE_EXEC:
		return values->exec;
	case RV_VALUE_GIVEN:
		break;
	}
	return test->value;
}

/* Half of an argument: 3 instructions at most, the last of them a jump that is patched to the next rule. */
static void emit_half(struct out *out, size_t offset, uint32_t mask, uint32_t value, size_t *jumps, size_t *count)
{
	if (mask == 0)
		return;
	emit_load(out, offset);
	if (mask != UINT32_MAX)
		emit(out, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
	jumps[(*count)++] = out->len;
	emit(out, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 0);
}

/* One rule: its action where all tests hold, else on to what follows. */
static void emit_rule(struct out *out, const struct rv_filter_rule *rule, const struct rv_filter_values *values)
{
	size_t jumps[2 * RV_FILTER_TESTS];
	size_t count = 0;

	for (size_t i = 0; i < RV_FILTER_TESTS; i++) {
		const struct rv_filter_test *test = &rule->tests[i];
		size_t at = offsetof(struct seccomp_data, args) + 8 * (size_t)test->argument;
		uint64_t value = value_of(test, values) & test->mask;

		/* little-endian, as both machines are */
		emit_half(out, at, (uint32_t)test->mask, (uint32_t)value, jumps, &count);
		emit_half(out, at + 4, (uint32_t)(test->mask >> 32), (uint32_t)(value >> 32), jumps, &count);
	}
	emit_return(out, rule->action);
	for (size_t i = 0; i < count && out->len <= RV_FILTER_MAX; i++)
		out->code[jumps[i]].jf = (uint8_t)(out->len - jumps[i] - 1);
}

static bool is_unconditional(const struct rv_filter_rule *rule)
{
	for (size_t i = 0; i < RV_FILTER_TESTS; i++) {
		if (rule->tests[i].mask != 0)
			return false;
	}
	return true;
}

static bool speaks_of(const struct rv_filter_rule *rule, uint32_t number)
{
	return rule->first <= number && number <= rule->last;
}

static void emit_leaf(struct out *out, const struct rv_filter *filter, const struct rv_filter_values *values,
		      const struct span *span)
{
	for (size_t i = 0; i < filter->count && span->ruled; i++) {
		if (!speaks_of(&filter->rules[i], span->start))
			continue;
		emit_rule(out, &filter->rules[i], values);
		if (is_unconditional(&filter->rules[i]))
			return;
	}
	emit_return(out, filter->otherwise);
}

/* ---- all numbers ---- */

/* The number at or after `from` at which another set of rules begins. */
static uint32_t next_edge(const struct rv_filter *filter, uint32_t from)
{
	uint32_t edge = UINT32_MAX;

	for (size_t i = 0; i < filter->count; i++) {
		const struct rv_filter_rule *rule = &filter->rules[i];

		if (rule->first > from && rule->first < edge)
			edge = rule->first;
		if (rule->last >= from && rule->last < edge - 1)
			edge = rule->last + 1;
	}
	return edge;
}

/* What a number comes to without a look at an argument: true and the action. */
static bool is_plain(const struct rv_filter *filter, const struct span *span, uint32_t *action)
{
	*action = filter->otherwise;
	for (size_t i = 0; i < filter->count && span->ruled; i++) {
		if (speaks_of(&filter->rules[i], span->start)) {
			*action = filter->rules[i].action;
			return is_unconditional(&filter->rules[i]);
		}
	}
	return true;
}

static int add_span(const struct rv_filter *filter, struct span *spans, size_t *count, uint32_t start)
{
	struct span span = { start, false };
	uint32_t before;
	uint32_t now;

	for (size_t i = 0; i < filter->count; i++)
		span.ruled = span.ruled || speaks_of(&filter->rules[i], start);
	if (*count > 0 && is_plain(filter, &spans[*count - 1], &before) && is_plain(filter, &span, &now) && before == now)
		return 0; /* neighbours that end alike are one */
	if (*count == SPANS_MAX) {
		errno = E2BIG;
		return -1;
	}
	spans[(*count)++] = span;
	return 0;
}

static int list_spans(const struct rv_filter *filter, struct span *spans, size_t *count)
{
	*count = 0;
	for (uint32_t at = 0; at != UINT32_MAX; at = next_edge(filter, at)) {
		if (add_span(filter, spans, count, at) != 0)
			return -1;
	}
	return 0;
}

/* Binary search as code: at each node the left half follows, and the right one is jumped to.  A conditional
 * jump reaches 255 instructions, so it only steps over a long one. */
static void emit_tree(struct out *out, const struct rv_filter *filter, const struct rv_filter_values *values,
		      const struct span *spans, size_t count)
{
	struct {
		size_t low, high, jump;
	} pending[PENDING_MAX];
	size_t depth = 0;
	size_t low = 0;
	size_t high = count;

	for (;;) {
		while (high - low > 1) {
			size_t middle = low + (high - low) / 2;

			emit(out, BPF_JMP | BPF_JGE | BPF_K, spans[middle].start, 0, 1);
			pending[depth].low = middle;
			pending[depth].high = high;
			pending[depth++].jump = out->len;
			emit(out, BPF_JMP | BPF_JA, 0, 0, 0);
			high = middle;
		}
		emit_leaf(out, filter, values, &spans[low]);
		if (depth == 0)
			return;
		depth--;
		low = pending[depth].low;
		high = pending[depth].high;
		if (out->len <= RV_FILTER_MAX)
			out->code[pending[depth].jump].k = (uint32_t)(out->len - pending[depth].jump - 1);
	}
}

int rv_filter_compile(const struct rv_filter *filter, const struct rv_filter_values *values, struct sock_filter *code)
{
	struct span spans[SPANS_MAX];
	struct out out = { code, 0 };
	size_t count;

	if (list_spans(filter, spans, &count) != 0)
		return -1;
	emit_load(&out, offsetof(struct seccomp_data, arch));
	emit(&out, BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	emit_return(&out, SECCOMP_RET_KILL_PROCESS);
	emit_load(&out, offsetof(struct seccomp_data, nr));
#ifdef X32_BIT
	emit(&out, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
	emit_return(&out, RV_FILTER_ERRNO(ENOSYS));
#endif
	emit_tree(&out, filter, values, spans, count);
	if (out.len > RV_FILTER_MAX) {
		errno = E2BIG;
		return -1;
	}
	return (int)out.len;
}

int rv_filter_load_program(const struct sock_filter *code, int len)
{
	/* the kernel does not write to it */
	struct sock_fprog program = { .len = (unsigned short)len, .filter = (struct sock_filter *)(uintptr_t)code };

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0U, &program);
}

int rv_filter_load(const struct rv_filter *filter, const struct rv_filter_values *values)
{
	struct sock_filter code[RV_FILTER_MAX];
	int len = rv_filter_compile(filter, values, code);

	return len < 0 ? -1 : rv_filter_load_program(code, len);
}
