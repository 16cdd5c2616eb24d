/*
 * The order of an object's members: by UTF-16 code unit, over names that are WTF-8.
 *
 * Bytes order names as code points do.  That differs from code units in one way only: a
 * character beyond U+FFFF is a pair of surrogates (D800 to DFFF) there, so it comes before
 * U+E000 to U+FFFF, and among lone surrogates.
 */
#include "lib/json/parse.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define INSERTED 12 /* up to here insertion beats merging */

/* Code units one by one. */
struct units {
	const unsigned char *at;
	const unsigned char *end;
	uint32_t low; /* the second half of a pair, still to come; 0 for none */
};

static int next_unit(struct units *units)
{
	const unsigned char *c = units->at;
	uint32_t point;

	if (units->low != 0) {
		uint32_t low = units->low;

		units->low = 0;
		return (int)low;
	}
	if (c == units->end)
		return -1;
	if (c[0] < 0x80) {
		units->at += 1;
		return c[0];
	}
	if (c[0] < 0xE0) {
		units->at += 2;
		return (c[0] & 0x1F) << 6 | (c[1] & 0x3F);
	}
	if (c[0] < 0xF0) {
		units->at += 3;
		return (c[0] & 0x0F) << 12 | (c[1] & 0x3F) << 6 | (c[2] & 0x3F);
	}
	units->at += 4;
	point = (c[0] & 0x07U) << 18 | (c[1] & 0x3FU) << 12 | (c[2] & 0x3FU) << 6 | (c[3] & 0x3FU);
	units->low = 0xDC00 | (point & 0x3FF);
	return (int)(0xD7C0 + (point >> 10));
}

/* From a place where a character begins in both. */
static int compare_units(struct rv_span a, struct rv_span b, size_t from)
{
	struct units left = { (const unsigned char *)a.data + from, (const unsigned char *)a.data + a.len, 0 };
	struct units right = { (const unsigned char *)b.data + from, (const unsigned char *)b.data + b.len, 0 };

	for (;;) {
		int x = next_unit(&left);
		int y = next_unit(&right);

		if (x != y)
			return x < y ? -1 : 1;
		if (x < 0)
			return 0;
	}
}

int rv_name_compare(struct rv_span a, struct rv_span b)
{
	size_t common = a.len < b.len ? a.len : b.len;
	size_t at = 0;
	unsigned char x;
	unsigned char y;

	while (at < common && a.data[at] == b.data[at])
		at++;
	if (at == common)
		return a.len == b.len ? 0 : a.len < b.len ? -1 : 1;
	x = (unsigned char)a.data[at];
	y = (unsigned char)b.data[at];
	/* different lead bytes, and one is of a pair: else the bytes' order is the units' */
	if (x >= 0xED && y >= 0xED && (x >= 0xF0) != (y >= 0xF0))
		return compare_units(a, b, at);
	return x < y ? -1 : 1;
}

/* The first eight bytes of an ASCII name, so that most comparisons are one of integers. */
#define NO_KEY UINT64_MAX

static uint64_t key_of(struct rv_span name)
{
	uint64_t word;

	memcpy(&word, name.data, sizeof word); /* RV_SPARE: there are always eight bytes */
	word = be64toh(word);
	if (name.len < sizeof word)
		word &= name.len == 0 ? 0 : UINT64_MAX << (64 - 8 * name.len);
	return (word & UINT64_C(0x8080808080808080)) == 0 ? word : NO_KEY;
}

static bool name_follows(const struct rv_item *a, const struct rv_item *b)
{
	if (a->key != b->key && a->key != NO_KEY && b->key != NO_KEY)
		return a->key > b->key;
	return rv_name_compare(rv_node_name(a->node), rv_node_name(b->node)) > 0;
}

static bool key_follows(const struct rv_item *a, const struct rv_item *b)
{
	return a->key > b->key;
}

typedef bool (*follows_fn)(const struct rv_item *a, const struct rv_item *b);

static inline __attribute__((always_inline)) void insert(struct rv_item *items, size_t count, follows_fn follows)
{
	for (size_t i = 1; i < count; i++) {
		struct rv_item item = items[i];
		size_t at = i;

		for (; at > 0 && follows(&items[at - 1], &item); at--)
			items[at] = items[at - 1];
		items[at] = item;
	}
}

/* [0, middle) and [middle, count) of `from`, each in order, into `to`; of equals the left first. */
static inline __attribute__((always_inline)) void merge(const struct rv_item *from, struct rv_item *to, size_t middle,
							 size_t count, follows_fn follows)
{
	size_t left = 0;
	size_t right = middle;

	for (size_t i = 0; i < count; i++) {
		if (left < middle && (right == count || !follows(&from[left], &from[right])))
			to[i] = from[left++];
		else
			to[i] = from[right++];
	}
}

static inline __attribute__((always_inline)) void sort(struct rv_item *items, struct rv_item *spare, size_t count,
							follows_fn follows)
{
	struct rv_item *from = items;
	struct rv_item *to = spare;

	for (size_t at = 0; at < count; at += INSERTED)
		insert(items + at, count - at < INSERTED ? count - at : INSERTED, follows);
	for (size_t width = INSERTED; width < count; width *= 2) {
		struct rv_item *swapped = from;

		for (size_t at = 0; at < count; at += 2 * width) {
			size_t here = count - at < 2 * width ? count - at : 2 * width;

			merge(from + at, to + at, here < width ? here : width, here, follows);
		}
		from = to;
		to = swapped;
	}
	if (from != items)
		memcpy(items, from, count * sizeof *items);
}

static void sort_by_name(struct rv_item *items, struct rv_item *spare, size_t count)
{
	for (size_t i = 0; i < count; i++)
		items[i].key = key_of(rv_node_name(items[i].node));
	sort(items, spare, count, name_follows);
}

static bool same_name(const struct rv_item *a, const struct rv_item *b)
{
	return rv_span_equal(rv_node_name(a->node), rv_node_name(b->node));
}

size_t rv_items_order_canonical(struct rv_item *items, struct rv_item *spare, size_t count)
{
	size_t kept = 0;

	sort_by_name(items, spare, count);
	for (size_t i = 0; i < count; i++) {
		if (i + 1 == count || !same_name(&items[i], &items[i + 1]))
			items[kept++] = items[i];
	}
	return kept;
}

#define NO_INDEX ((uint64_t)1 << 32)

/* The number of a canonical array index (0 to 2^32-2), or NO_INDEX. */
static uint64_t array_index(struct rv_span name)
{
	uint64_t value = 0;

	if (name.len == 0 || name.len > 10 || (name.data[0] == '0' && name.len > 1))
		return NO_INDEX;
	for (size_t i = 0; i < name.len; i++) {
		if (name.data[i] < '0' || name.data[i] > '9')
			return NO_INDEX;
		value = value * 10 + (uint64_t)(name.data[i] - '0');
	}
	return value < UINT32_MAX ? value : NO_INDEX;
}

size_t rv_items_order_engine(struct rv_item *items, struct rv_item *spare, size_t count)
{
	size_t kept = 0;

	sort_by_name(items, spare, count);
	for (size_t i = 0; i < count;) {
		struct rv_item item = items[i];

		for (i++; i < count && same_name(&item, &items[i]); i++)
			item.node = items[i].node; /* the first's place, the last's value */
		item.key = array_index(rv_node_name(item.node));
		if (item.key == NO_INDEX)
			item.key += item.place;
		items[kept++] = item;
	}
	sort(items, spare, kept, key_follows);
	return kept;
}

enum rv_distinct rv_members_check_distinct(const struct rv_json_node *object)
{
	struct rv_item *items;
	size_t count = rv_members_count(object);
	size_t kept;

	if (count < 2)
		return RV_DISTINCT;
	items = count < SIZE_MAX / (2 * sizeof *items) ? malloc(2 * count * sizeof *items) : NULL;
	if (items == NULL)
		return RV_DISTINCT_NO_MEMORY;
	rv_members_list(object, items);
	kept = rv_items_order_canonical(items, items + count, count);
	free(items);
	return kept == count ? RV_DISTINCT : RV_DUPLICATE;
}

size_t rv_members_count(const struct rv_json_node *object)
{
	size_t count = 0;

	for (const struct rv_json_node *c = object->v.list.first; c != NULL; c = c->next)
		count++;
	return count;
}

void rv_members_list(const struct rv_json_node *object, struct rv_item *items)
{
	size_t place = 0;

	for (const struct rv_json_node *c = object->v.list.first; c != NULL; c = c->next, place++)
		items[place] = (struct rv_item){ .node = c, .key = 0, .place = place };
}
