/*
 * Long strings that yajl need not read.  It looks at every byte of a string, at a quarter of the speed of all else
 * that is done with a large document, and says of a string without escapes only where it ends.  So where such strings
 * are most of a text, yajl reads one in which each of them is a single byte that no text holds (the prepass let
 * nothing in but UTF-8 and surrogates), and its events get the strings in their order.  Offsets are moved by what
 * was left out.  Whatever is refused is read again as it stands: so the words and offsets of a refusal are the same.
 */
#include "lib/json/parse.h"

#include <string.h>

#define LONG ((size_t)1024)
#define STAND_IN '\xFF'

/* The closing quote of the string whose content is at `at`; NULL where it does not end.  *plain: nothing in it has
 * to be decoded or refused.  No byte is looked at twice for the same: a quote that was found stays the next one
 * until an escape has passed it. */
static const char *string_end(const char *at, const char *end, bool *plain)
{
	const char *quote = memchr(at, '"', (size_t)(end - at));

	*plain = true;
	while (quote != NULL) {
		const char *backslash = memchr(at, '\\', (size_t)(quote - at));

		if (backslash == NULL)
			return quote;
		*plain = false;
		at = backslash + 2; /* not beyond the quote's next, so not beyond the end */
		if (at > quote)
			quote = memchr(at, '"', (size_t)(end - at));
	}
	return NULL;
}

/* Fill in the long strings; how many bytes are left out. */
static size_t find_long(struct rv_json_doc *doc)
{
	const char *end = doc->text + doc->len;
	const char *at = doc->text;
	size_t saved = 0;

	while ((at = memchr(at, '"', (size_t)(end - at))) != NULL) {
		const char *start = at + 1;
		bool plain;

		at = string_end(start, end, &plain);
		if (at == NULL)
			break;
		if (plain && (size_t)(at - start) >= LONG && !rv_guard_has_control(start, (size_t)(at - start))) {
			doc->longs[doc->long_count++] = (struct rv_span){ start, (size_t)(at - start) };
			saved += (size_t)(at - start) - 1;
		}
		at++;
	}
	return saved;
}

/* All but the long strings, and as much behind it as stands behind the text. */
static void write_abridged(struct rv_json_doc *doc, char *to)
{
	const char *from = doc->text;
	const char *end = doc->text + doc->len + RV_TEXT_MARGIN;

	for (size_t i = 0; i < doc->long_count; i++) {
		size_t before = (size_t)(doc->longs[i].data - from);

		memcpy(to, from, before);
		to[before] = STAND_IN;
		to += before + 1;
		from = doc->longs[i].data + doc->longs[i].len;
	}
	memcpy(to, from, (size_t)(end - from));
}

int rv_json_abridge(struct rv_json_doc *doc)
{
	size_t saved;
	char *read;

	doc->longs = rv_arena_alloc(&doc->arena, (doc->len / LONG + 1) * sizeof *doc->longs);
	if (doc->longs == NULL)
		return -1;
	saved = find_long(doc);
	if (saved < doc->len / 2)
		return 0;
	read = rv_arena_alloc(&doc->arena, doc->len - saved + RV_TEXT_MARGIN);
	if (read == NULL)
		return -1;
	write_abridged(doc, read);
	doc->read = read;
	doc->read_len = doc->len - saved;
	return 1;
}

bool rv_json_take_long(struct rv_json_doc *doc, struct rv_span *text)
{
	if (text->len != 1 || text->data[0] != STAND_IN)
		return false;
	*text = doc->longs[doc->long_next++];
	doc->left_out += text->len - 1;
	return true;
}
