#include "lib/ledger/flat.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "lib/ledger/escape.h"
#include "lib/ledger/names.h"

#define DEPTH_MAX 64 /* of what a member may nest before the slow way has to read it */
#define DIGITS_MAX 15 /* of an integer that a double holds exactly whatever the digits are */

enum member {
	PHASE, KEY, RUN_ID, SPAN_ID, TOOL, ARGS_HASH, EXECUTOR, WORKDIR, STARTED_AT, ATTEMPT_ID,
	DURATION_MS, OUTCOME, EXIT_CODE, SIGNAL, BYTES, BYTES_BASE64, SHA256, RECOVERED_AT, MEMBERS
};

#define NAMED(text) { "\"" text "\":", sizeof(text) + 2 }

/* As they are written, quotes and colon with them, and in that order: the next name in a row is nearly
 * always the next one here. */
static const struct rv_span names[MEMBERS] = {
	[PHASE] = NAMED(RV_NAME_PHASE), [KEY] = NAMED(RV_NAME_KEY), [RUN_ID] = NAMED(RV_NAME_RUN_ID),
	[SPAN_ID] = NAMED(RV_NAME_SPAN_ID), [TOOL] = NAMED(RV_NAME_TOOL), [ARGS_HASH] = NAMED(RV_NAME_ARGS_HASH),
	[EXECUTOR] = NAMED(RV_NAME_EXECUTOR), [WORKDIR] = NAMED(RV_NAME_WORKDIR),
	[STARTED_AT] = NAMED(RV_NAME_STARTED_AT), [ATTEMPT_ID] = NAMED(RV_NAME_ATTEMPT_ID),
	[DURATION_MS] = NAMED(RV_NAME_DURATION_MS), [OUTCOME] = NAMED(RV_NAME_OUTCOME),
	[EXIT_CODE] = NAMED(RV_NAME_EXIT_CODE), [SIGNAL] = NAMED(RV_NAME_SIGNAL), [BYTES] = NAMED(RV_NAME_BYTES),
	[BYTES_BASE64] = NAMED(RV_NAME_BYTES_BASE64), [SHA256] = NAMED(RV_NAME_SHA256),
	[RECOVERED_AT] = NAMED(RV_NAME_RECOVERED_AT),
};

enum kind { KIND_STRING, KIND_NUMBER, KIND_NULL, KIND_OTHER };

struct value {
	enum kind kind;
	bool escaped;        /* the text is not what it says */
	struct rv_span text; /* a string without its quotes */
};

struct flat {
	const char *at;
	const char *end;
	unsigned seen; /* bits 1 << enum member */
	struct value values[MEMBERS];
};

static bool is_plain(char c)
{
	return (unsigned char)c >= 0x20 && c != '"' && c != '\\';
}

/* The first byte from `at` that ends a string or that this reader does not take, and whether any on
 * the way was not ASCII. */
static const char *skip_plain(const char *at, const char *end, bool *high)
{
#ifdef __SSE2__
	const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), control = _mm_set1_epi8(0x1f);

	for (; end - at >= 16; at += 16) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
		__m128i stop = _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, slash));
		unsigned mask;

		stop = _mm_or_si128(stop, _mm_cmpeq_epi8(_mm_min_epu8(bytes, control), bytes));
		*high |= _mm_movemask_epi8(bytes) != 0; /* also of bytes behind the stop: only a check too many */
		mask = (unsigned)_mm_movemask_epi8(stop);
		if (mask != 0)
			return at + __builtin_ctz(mask);
	}
#endif
	for (; at < end && is_plain(*at); at++)
		*high |= (unsigned char)*at >= 0x80;
	return at;
}

/* Behind its opening quote. */
static bool read_string(struct flat *flat, struct value *value)
{
	const char *start = flat->at;
	bool high = false;

	value->kind = KIND_STRING;
	value->escaped = false;
	for (;;) {
		size_t len;

		flat->at = skip_plain(flat->at, flat->end, &high);
		if (flat->at == flat->end)
			return false;
		if (*flat->at == '"')
			break;
		len = *flat->at == '\\' ? rv_escape_len(flat->at, (size_t)(flat->end - flat->at)) : 0;
		if (len == 0)
			return false;
		value->escaped = true;
		flat->at += len;
	}
	value->text = (struct rv_span){ start, (size_t)(flat->at - start) };
	flat->at++;
	return !high || rv_text_is_utf8(value->text.data, value->text.len);
}

static bool digits(struct flat *flat)
{
	const char *start = flat->at;

	while (flat->at < flat->end && *flat->at >= '0' && *flat->at <= '9')
		flat->at++;
	return flat->at > start;
}

/* A newline is in no line. */
static void skip_space(struct flat *flat)
{
	while (flat->at < flat->end && (*flat->at == ' ' || *flat->at == '\t' || *flat->at == '\r'))
		flat->at++;
}

static bool take(struct flat *flat, char c)
{
	if (flat->at == flat->end || *flat->at != c)
		return false;
	flat->at++;
	return true;
}

/* What stands between values, with white space before and behind it. */
static bool take_mark(struct flat *flat, char c)
{
	skip_space(flat);
	if (!take(flat, c))
		return false;
	skip_space(flat);
	return true;
}

static bool read_number(struct flat *flat, struct rv_span *text)
{
	const char *start = flat->at;

	(void)take(flat, '-');
	if (!take(flat, '0') && !digits(flat))
		return false;
	if (take(flat, '.') && !digits(flat))
		return false;
	if (take(flat, 'e') || take(flat, 'E')) {
		if (!take(flat, '-'))
			(void)take(flat, '+');
		if (!digits(flat))
			return false;
	}
	*text = (struct rv_span){ start, (size_t)(flat->at - start) };
	return true;
}

static bool read_literal(struct flat *flat, struct rv_span literal)
{
	if ((size_t)(flat->end - flat->at) < literal.len || memcmp(flat->at, literal.data, literal.len) != 0)
		return false;
	flat->at += literal.len;
	return true;
}

/* Anything but a container. */
static bool read_scalar(struct flat *flat, struct value *value)
{
	if (take(flat, '"'))
		return read_string(flat, value);
	if (read_literal(flat, RV_SPAN("null"))) {
		value->kind = KIND_NULL;
		return true;
	}
	value->kind = KIND_NUMBER;
	if (flat->at < flat->end && (*flat->at == '-' || (*flat->at >= '0' && *flat->at <= '9')))
		return read_number(flat, &value->text);
	value->kind = KIND_OTHER;
	return read_literal(flat, RV_SPAN("true")) || read_literal(flat, RV_SPAN("false"));
}

static bool read_name(struct flat *flat, struct value *name)
{
	return take(flat, '"') && read_string(flat, name) && take_mark(flat, ':');
}

/* After a value in a container: close what ends here.  False in *more once the outermost is closed. */
static bool after_value(struct flat *flat, const bool *objects, size_t *depth, bool *more)
{
	for (;;) {
		struct value name;

		if (take_mark(flat, ','))
			return !objects[*depth - 1] || read_name(flat, &name);
		if (!take_mark(flat, objects[*depth - 1] ? '}' : ']'))
			return false;
		*more = --*depth > 0;
		if (!*more)
			return true;
	}
}

/* A container and all in it, without recursion. */
static bool skip_container(struct flat *flat)
{
	bool objects[DEPTH_MAX];
	size_t depth = 0;
	bool more = true;

	while (more) {
		struct value ignored;
		bool object = take_mark(flat, '{');

		if (object || take_mark(flat, '[')) {
			if (depth == DEPTH_MAX)
				return false;
			objects[depth++] = object;
			if (flat->at < flat->end && *flat->at == (object ? '}' : ']')) {
				if (!after_value(flat, objects, &depth, &more))
					return false;
			} else if (object && !read_name(flat, &ignored)) {
				return false;
			}
			continue;
		}
		if (!read_scalar(flat, &ignored) || !after_value(flat, objects, &depth, &more))
			return false;
	}
	return true;
}

static bool read_value(struct flat *flat, struct value *value)
{
	if (flat->at < flat->end && (*flat->at == '{' || *flat->at == '[')) {
		value->kind = KIND_OTHER;
		return skip_container(flat);
	}
	return read_scalar(flat, value);
}

/* The member whose name stands here, MEMBERS for one that is not ours; false where none does, and where it
 * is written with escapes: it may be ours. */
static bool read_member_name(struct flat *flat, int expected, int *member)
{
	const char *start = flat->at;
	struct value name;

	if (expected < MEMBERS && read_literal(flat, names[expected])) {
		*member = expected;
		skip_space(flat);
		return true;
	}
	if (!read_name(flat, &name) || name.escaped)
		return false;
	for (*member = 0; *member < MEMBERS; (*member)++) {
		if (names[*member].len == name.text.len + 3 && memcmp(start, names[*member].data, name.text.len + 2) == 0)
			break;
	}
	return true;
}

static bool read_object(struct flat *flat)
{
	int member = -1;

	if (!take_mark(flat, '{'))
		return false;
	do {
		struct value other;

		if (!read_member_name(flat, member + 1, &member))
			return false;
		if (member == MEMBERS) {
			if (!read_value(flat, &other))
				return false;
			continue;
		}
		if ((flat->seen & 1U << member) != 0 || !read_value(flat, &flat->values[member]))
			return false;
		flat->seen |= 1U << member;
	} while (take_mark(flat, ','));
	return take_mark(flat, '}') && flat->at == flat->end;
}

static bool is_kind(const struct flat *flat, enum member member, enum kind kind)
{
	return (flat->seen & 1U << member) != 0 && flat->values[member].kind == kind;
}

static bool is_or_null(const struct flat *flat, enum member member, enum kind kind)
{
	return is_kind(flat, member, kind) || is_kind(flat, member, KIND_NULL);
}

static bool is_maybe_string(const struct flat *flat, enum member member)
{
	return (flat->seen & 1U << member) == 0 || flat->values[member].kind == KIND_STRING;
}

static bool plain_integer(struct rv_span text, double *value)
{
	int64_t sum = 0;

	if (text.len > DIGITS_MAX)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
		sum = sum * 10 + (text.data[i] - '0');
	}
	*value = (double)sum;
	return true;
}

/* A string that is what it says. */
static bool take_text(const struct flat *flat, enum member member, struct rv_span *text)
{
	if (!is_kind(flat, member, KIND_STRING) || flat->values[member].escaped)
		return false;
	*text = flat->values[member].text;
	return true;
}

static bool take_attempt(const struct flat *flat, struct rv_row *row)
{
	for (int member = KEY; member <= WORKDIR; member++) {
		if (!is_kind(flat, (enum member)member, KIND_STRING))
			return false;
	}
	if (!is_kind(flat, STARTED_AT, KIND_NUMBER))
		return false;
	if ((flat->seen & 1U << ATTEMPT_ID) != 0)
		return take_text(flat, ATTEMPT_ID, &row->attempt_id);
	return take_text(flat, KEY, &row->key) && plain_integer(flat->values[STARTED_AT].text, &row->started_at);
}

static bool take_outcome(const struct flat *flat, struct rv_row *row)
{
	struct rv_span name;

	return is_kind(flat, DURATION_MS, KIND_NUMBER) && is_or_null(flat, EXIT_CODE, KIND_NUMBER) &&
	       is_or_null(flat, SIGNAL, KIND_STRING) && take_text(flat, OUTCOME, &name) &&
	       rv_outcome_class_of(name, &row->outcome);
}

static bool is_torn(const struct flat *flat)
{
	return is_kind(flat, BYTES, KIND_STRING) && is_maybe_string(flat, BYTES_BASE64) && is_maybe_string(flat, SHA256) &&
	       is_kind(flat, RECOVERED_AT, KIND_NUMBER);
}

bool rv_flat_read(struct rv_span line, struct rv_row *row)
{
	struct flat flat; /* values are read only where they were seen */
	struct rv_span phase;

	if (line.len == 0)
		return false;
	flat.at = line.data;
	flat.end = line.data + line.len;
	flat.seen = 0;
	if (!read_object(&flat) || !take_text(&flat, PHASE, &phase))
		return false;
	memset(row, 0, sizeof *row);
	if (rv_span_equal(phase, RV_SPAN("intent"))) {
		row->phase = RV_PHASE_INTENT;
		return take_attempt(&flat, row);
	}
	if (rv_span_equal(phase, RV_SPAN("outcome"))) {
		row->phase = RV_PHASE_OUTCOME;
		return take_attempt(&flat, row) && take_outcome(&flat, row);
	}
	row->phase = RV_PHASE_TORN;
	return rv_span_equal(phase, RV_SPAN("torn")) && is_torn(&flat);
}
