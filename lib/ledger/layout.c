#include "lib/ledger/layout.h"

#include <string.h>

#include "lib/base/plain.h"
#include "lib/ledger/escape.h"
#include "lib/ledger/names.h"

#define LITERAL_MAX 32 /* what two vectors hold */

enum kind {
	STRING,         /* up to its closing quote, with which the next literal begins */
	STRING_OR_NULL, /* the whole value */
	NUMBER,
	NUMBER_OR_NULL,
	END             /* nothing: the literal was the end of the line */
};

/* Whose text is wanted, and so must be without escapes. */
enum slot { NOBODY, ATTEMPT_ID, OUTCOME, SLOTS };

struct step {
	char literal[LITERAL_MAX]; /* what stands before the value */
	uint32_t want; /* a bit for each byte of it */
	unsigned char len;
	unsigned char kind;
	unsigned char slot; /* where the value goes */
	bool may_end;       /* instead of it a row may end here: "} behind a string */
};

#define WANT(text) ((uint32_t)((UINT64_C(1) << (sizeof(text) - 1)) - 1))
#define STEP(text, kind, slot) { text, WANT(text), sizeof(text) - 1, kind, slot, false }
#define MORE(text, kind, slot) { text, WANT(text), sizeof(text) - 1, kind, slot, true }

#define ATTEMPT                                                                 \
	STEP(",\"" RV_NAME_KEY "\":\"", STRING, NOBODY),                        \
	STEP("\",\"" RV_NAME_RUN_ID "\":\"", STRING, NOBODY),                   \
	STEP("\",\"" RV_NAME_SPAN_ID "\":\"", STRING, NOBODY),                  \
	STEP("\",\"" RV_NAME_TOOL "\":\"", STRING, NOBODY),                     \
	STEP("\",\"" RV_NAME_ARGS_HASH "\":\"", STRING, NOBODY),                \
	STEP("\",\"" RV_NAME_EXECUTOR "\":\"", STRING, NOBODY),                 \
	STEP("\",\"" RV_NAME_WORKDIR "\":\"", STRING, NOBODY),                  \
	STEP("\",\"" RV_NAME_STARTED_AT "\":", NUMBER, NOBODY),                 \
	STEP(",\"" RV_NAME_ATTEMPT_ID "\":\"", STRING, ATTEMPT_ID)

#define INTENT_HEAD  "{\"" RV_NAME_PHASE "\":\"intent\""
#define OUTCOME_HEAD "{\"" RV_NAME_PHASE "\":\"outcome\""

static const struct step intent_steps[] = {
	ATTEMPT,
	MORE("\",\"" RV_NAME_SANDBOX "\":\"", STRING, NOBODY),
	STEP("\",\"" RV_NAME_CONTAINMENT "\":\"", STRING, NOBODY),
	MORE("\",\"" RV_NAME_WRITER "\":{\"" RV_NAME_HOST "\":\"", STRING, NOBODY),
	STEP("\",\"" RV_NAME_BOOT_ID "\":\"", STRING, NOBODY),
	STEP("\",\"" RV_NAME_PID "\":", NUMBER, NOBODY),
	STEP(",\"" RV_NAME_START_TIME "\":", NUMBER, NOBODY),
	STEP(",\"" RV_NAME_LOCK "\":", NUMBER, NOBODY),
	STEP(",\"" RV_NAME_UNTIL "\":", NUMBER, NOBODY),
	STEP("}}\n", END, NOBODY),
};

static const struct step outcome_steps[] = {
	ATTEMPT,
	STEP("\",\"" RV_NAME_DURATION_MS "\":", NUMBER, NOBODY),
	STEP(",\"" RV_NAME_OUTCOME "\":\"", STRING, OUTCOME),
	STEP("\",\"" RV_NAME_EXIT_CODE "\":", NUMBER_OR_NULL, NOBODY),
	STEP(",\"" RV_NAME_SIGNAL "\":", STRING_OR_NULL, NOBODY),
	STEP("}\n", END, NOBODY),
};

/* Is the literal at `at`? */
static inline __attribute__((always_inline)) bool is_literal(const char *at, const struct step *step, bool vectors)
{
#ifdef __SSE2__
	if (vectors) {
		const __m128i *text = (const __m128i *)(const void *)at;
		const __m128i *want = (const __m128i *)(const void *)step->literal;
		unsigned low = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(text), _mm_loadu_si128(want)));
		unsigned high = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(text + 1), _mm_loadu_si128(want + 1)));

		return ((high << 16 | low) & step->want) == step->want;
	}
#endif
	(void)vectors;
	return strncmp(at, step->literal, step->len) == 0; /* which does not pass a difference */
}

/* The first byte that is not plain ASCII of a string. */
static inline __attribute__((always_inline)) const char *skip_plain(const char *at, bool vectors)
{
#ifdef __SSE2__
	for (; vectors; at += 32) {
		unsigned stops = rv_plain_stops(rv_plain_load(at)) | rv_plain_stops(rv_plain_load(at + 16)) << 16;

		if (stops != 0)
			return at + __builtin_ctz(stops);
	}
#endif
	(void)vectors;
	while (rv_plain_byte(*at))
		at++;
	return at;
}

/* The closing quote of a string that is not all plain, or NULL. */
static __attribute__((noinline)) const char *end_of_text(const char *start, bool escapes)
{
	const char *at = start;

	while (*at != '"') {
		size_t len = *at == '\\' ? rv_escape_len(at, RV_LAYOUT_SLACK) : (unsigned char)*at >= 0x20;

		if (len == 0 || (*at == '\\' && !escapes))
			return NULL;
		at += len;
	}
	return rv_text_is_utf8(start, (size_t)(at - start)) ? at : NULL;
}

static inline __attribute__((always_inline)) const char *end_of_string(const char *start, bool escapes, bool vectors)
{
	const char *at = skip_plain(start, vectors);

	return *at == '"' ? at : end_of_text(start, escapes);
}

/* Behind the digits of an integer that is written without sign or leading zero; NULL where there is none. */
static inline __attribute__((always_inline)) const char *end_of_number(const char *start, bool vectors)
{
	const char *at = start;

#ifdef __SSE2__
	if (vectors) {
		__m128i values = _mm_sub_epi8(_mm_loadu_si128((const __m128i *)(const void *)at), _mm_set1_epi8('0'));
		unsigned digits = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(values, _mm_set1_epi8(9)), values));

		at += __builtin_ctz(~digits); /* at most 16: the rest, if any, below */
	}
#endif
	(void)vectors;
	while (*at >= '0' && *at <= '9')
		at++;
	return at == start || (*start == '0' && at - start > 1) ? NULL : at;
}

static bool is_null(const char *at)
{
	return at[0] == 'n' && at[1] == 'u' && at[2] == 'l' && at[3] == 'l';
}

/* Behind the value of a step that begins at `at`, or NULL. */
static inline __attribute__((always_inline)) const char *end_of_value(const char *at, const struct step *step,
								      bool vectors)
{
	switch ((enum kind)step->kind) {
	case STRING:
		return end_of_string(at, step->slot == NOBODY, vectors);
	case NUMBER:
		return end_of_number(at, vectors);
	case STRING_OR_NULL:
		if (*at == '"') {
			at = end_of_string(at + 1, step->slot == NOBODY, vectors);
			return at == NULL ? NULL : at + 1;
		}
		return is_null(at) ? at + 4 : NULL;
	case NUMBER_OR_NULL:
		return *at == 'n' ? (is_null(at) ? at + 4 : NULL) : end_of_number(at, vectors);
	case END:
		break;
	}
	return at;
}

static bool ends_here(const struct step *step, const char *at)
{
	return step->may_end && at[0] == '"' && at[1] == '}' && at[2] == '\n';
}

/* Follow the steps from `at`; the newline, or NULL where the line leaves them. */
static inline __attribute__((always_inline)) const char *follow(const char *at, const struct step *step,
								struct rv_span values[SLOTS], bool vectors)
{
	for (;; step++) {
		const char *end;

		if (!is_literal(at, step, vectors))
			return ends_here(step, at) ? at + 2 : NULL;
		at += step->len;
		if (step->kind == END)
			return at - 1;
		end = end_of_value(at, step, vectors);
		if (end == NULL)
			return NULL;
		values[step->slot] = (struct rv_span){ at, (size_t)(end - at) };
		at = end;
	}
}

static inline __attribute__((always_inline)) const char *read_row(const char *line, struct rv_row *row, bool vectors)
{
	static const struct step intent = STEP(INTENT_HEAD, END, NOBODY), outcome = STEP(OUTCOME_HEAD, END, NOBODY);
	struct rv_span values[SLOTS];
	const char *newline;

	if (is_literal(line, &intent, vectors)) {
		row->phase = RV_PHASE_INTENT;
		newline = follow(line + intent.len, intent_steps, values, vectors);
	} else if (is_literal(line, &outcome, vectors)) {
		row->phase = RV_PHASE_OUTCOME;
		newline = follow(line + outcome.len, outcome_steps, values, vectors);
	} else {
		return NULL;
	}
	if (newline == NULL)
		return NULL;
	row->attempt_id = values[ATTEMPT_ID];
	return row->phase == RV_PHASE_INTENT || rv_outcome_class_of(values[OUTCOME], &row->outcome) ? newline : NULL;
}

const char *rv_layout_read(const char *line, struct rv_row *row)
{
	return read_row(line, row, true);
}

const char *rv_layout_read_plain(const char *line, struct rv_row *row)
{
	return read_row(line, row, false);
}
