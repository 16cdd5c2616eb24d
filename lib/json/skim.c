/*
 * A look at a text that builds nothing: the grammar alone, strings by the vector.  It says yes only where it is
 * certain, and leaves all that is rare (a lone surrogate, a byte order mark, very deep nesting) and all that is wrong
 * to the parser, which also has the words for it.
 */
#include "lib/json/json.h"

#include <stdint.h>

#include "lib/base/plain.h"
#include "lib/json/tree.h"

#define DEPTH_MAX 1024 /* beyond it only the parser tells */

struct skim {
	const char *at;
	const char *end;
	const char *valid; /* up to here all is known to be UTF-8 */
	bool spaced;
	size_t depth;
	uint64_t objects[DEPTH_MAX / 64]; /* a bit for each open container: it is an object */
};

static bool is_at(const struct skim *skim, char c)
{
	return skim->at < skim->end && *skim->at == c;
}

static void pass_space(struct skim *skim)
{
	for (; skim->at < skim->end; skim->at++) {
		if (*skim->at != ' ' && *skim->at != '\n' && *skim->at != '\t' && *skim->at != '\r')
			return;
		skim->spaced = true;
	}
}

/* ---- strings ---- */

static bool pass_unit(struct skim *skim)
{
	size_t left = (size_t)(skim->end - skim->at);
	int unit = rv_json_unit_at(skim->at, left, 0);
	int low;

	if (unit < 0 || (unit >= 0xDC00 && unit <= 0xDFFF))
		return false;
	skim->at += 6;
	if (unit < 0xD800 || unit > 0xDFFF)
		return true;
	low = rv_json_unit_at(skim->at, left - 6, 0);
	if (low < 0xDC00 || low > 0xDFFF)
		return false;
	skim->at += 6;
	return true;
}

static bool pass_escape(struct skim *skim)
{
	if (skim->end - skim->at < 2)
		return false;
	switch (skim->at[1]) {
	case '"':
	case '\\':
	case '/':
	case 'b':
	case 'f':
	case 'n':
	case 'r':
	case 't':
		skim->at += 2;
		return true;
	case 'u':
		return pass_unit(skim);
	default:
		return false;
	}
}

/* What is not ASCII.  The rest of the text is looked at once, and not once for each character. */
static bool pass_wide(struct skim *skim)
{
	if (skim->at >= skim->valid)
		skim->valid = skim->at + rv_text_utf8_prefix(skim->at, (size_t)(skim->end - skim->at));
	if (skim->at >= skim->valid)
		return false;
	while (skim->at < skim->valid && (unsigned char)*skim->at >= 0x80)
		skim->at++;
	return true;
}

/* From behind the opening quote to behind the closing one. */
static bool pass_string(struct skim *skim)
{
	for (;;) {
		bool passed;

		skim->at += rv_plain_prefix(skim->at, (size_t)(skim->end - skim->at));
		if (skim->at == skim->end)
			return false;
		if (*skim->at == '"') {
			skim->at++;
			return true;
		}
		passed = *skim->at == '\\' ? pass_escape(skim) : (unsigned char)*skim->at >= 0x80 && pass_wide(skim);
		if (!passed)
			return false;
	}
}

/* ---- what stands alone ---- */

static bool pass_digits(struct skim *skim)
{
	const char *start = skim->at;

	while (skim->at < skim->end && *skim->at >= '0' && *skim->at <= '9')
		skim->at++;
	return skim->at > start;
}

static bool pass_number(struct skim *skim)
{
	if (is_at(skim, '-'))
		skim->at++;
	if (is_at(skim, '0'))
		skim->at++;
	else if (!pass_digits(skim))
		return false;
	if (is_at(skim, '.')) {
		skim->at++;
		if (!pass_digits(skim))
			return false;
	}
	if (is_at(skim, 'e') || is_at(skim, 'E')) {
		skim->at++;
		if (is_at(skim, '+') || is_at(skim, '-'))
			skim->at++;
		return pass_digits(skim);
	}
	return true;
}

static bool pass_word(struct skim *skim, struct rv_span word)
{
	if ((size_t)(skim->end - skim->at) < word.len || memcmp(skim->at, word.data, word.len) != 0)
		return false;
	skim->at += word.len;
	return true;
}

static bool pass_scalar(struct skim *skim)
{
	switch (*skim->at) {
	case '"':
		skim->at++;
		return pass_string(skim);
	case 't':
		return pass_word(skim, RV_SPAN("true"));
	case 'f':
		return pass_word(skim, RV_SPAN("false"));
	case 'n':
		return pass_word(skim, RV_SPAN("null"));
	default:
		return pass_number(skim);
	}
}

/* ---- containers ---- */

enum step { UNSURE, VALUE_DUE, PASSED };

static bool in_object(const struct skim *skim)
{
	size_t at = skim->depth - 1;

	return (skim->objects[at / 64] >> at % 64 & 1) != 0;
}

static bool pass_name(struct skim *skim)
{
	pass_space(skim);
	if (!is_at(skim, '"'))
		return false;
	skim->at++;
	if (!pass_string(skim))
		return false;
	pass_space(skim);
	if (!is_at(skim, ':'))
		return false;
	skim->at++;
	return true;
}

static enum step open_container(struct skim *skim, bool object)
{
	size_t at = skim->depth;

	if (at == DEPTH_MAX)
		return UNSURE;
	skim->objects[at / 64] &= ~(UINT64_C(1) << at % 64);
	skim->objects[at / 64] |= (uint64_t)object << at % 64;
	skim->at++;
	pass_space(skim);
	if (is_at(skim, object ? '}' : ']')) {
		skim->at++;
		return PASSED;
	}
	skim->depth++;
	return !object || pass_name(skim) ? VALUE_DUE : UNSURE;
}

static enum step pass_value(struct skim *skim)
{
	pass_space(skim);
	if (is_at(skim, '{') || is_at(skim, '['))
		return open_container(skim, *skim->at == '{');
	return skim->at < skim->end && pass_scalar(skim) ? PASSED : UNSURE;
}

/* Behind a value that is within a container. */
static enum step pass_separator(struct skim *skim)
{
	bool object = in_object(skim);

	if (is_at(skim, ',')) {
		skim->at++;
		return !object || pass_name(skim) ? VALUE_DUE : UNSURE;
	}
	if (!is_at(skim, object ? '}' : ']'))
		return UNSURE;
	skim->at++;
	skim->depth--;
	return PASSED;
}

enum rv_json_shape rv_json_skim(const char *text, size_t len)
{
	struct skim skim;
	enum step step = VALUE_DUE;

	skim.at = text;
	skim.end = text + len;
	skim.valid = text;
	skim.spaced = false;
	skim.depth = 0;
	for (;;) {
		if (step == VALUE_DUE) {
			step = pass_value(&skim);
		} else {
			pass_space(&skim);
			if (skim.depth == 0)
				break;
			step = pass_separator(&skim);
		}
		if (step == UNSURE)
			return RV_JSON_UNSURE;
	}
	if (skim.at < skim.end)
		return RV_JSON_UNSURE;
	return skim.spaced ? RV_JSON_SPACED : RV_JSON_COMPACT;
}
