#include "lib/ledger/pair.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buffer.h"
#include "lib/base/memory.h"
#include "lib/digest/digest.h"

enum kind { KIND_UUID, KIND_ATTEMPT, KIND_LEGACY };

struct entry {
	unsigned char id[16]; /* the UUID, or the offset and length of the identity in `text` */
	uint8_t kind;
	uint8_t marks;
};

/* The hash is here, so that a slot that belongs to another entry costs no look at that entry. */
struct slot {
	uint32_t hash;
	uint32_t number; /* of the entry, plus one; 0: free */
};

struct rv_pairs {
	uint64_t seed[2]; /* a ledger's writer must not be able to choose colliding identities */
	struct entry *entries;
	uint32_t count, cap;
	struct slot *slots; /* a power of two of them */
	uint32_t mask;
	struct rv_buffer text;
	double expected; /* entries in the end, or 0 */
};

#define FIRST_SLOTS 1024u
#define COUNT_MAX (UINT32_MAX / 4)
#define STEPS 3 /* doublings at once at most: what is expected may never come */

/* The 32 digits of an 8-4-4-4-12 text without their hyphens; false where those are not there. */
static bool take_digits(struct rv_span text, unsigned char digits[32])
{
	const char *at = text.data;

	if (text.len != 36 || at[8] != '-' || at[13] != '-' || at[18] != '-' || at[23] != '-')
		return false;
	memcpy(digits, at, 8);
	memcpy(digits + 8, at + 9, 4);
	memcpy(digits + 12, at + 14, 4);
	memcpy(digits + 16, at + 19, 4);
	memcpy(digits + 20, at + 24, 12);
	return true;
}

/* Lowercase only, so that one text has one value.  In a form that the compiler makes vectors of. */
static bool pack_uuid(struct rv_span text, unsigned char id[16])
{
	unsigned char digits[32];
	unsigned char bad = 0;

	if (!take_digits(text, digits))
		return false;
	for (size_t i = 0; i < sizeof digits; i++) {
		unsigned char decimal = (unsigned char)(digits[i] - '0');
		unsigned char letter = (unsigned char)(digits[i] - 'a');

		bad |= (unsigned char)((decimal > 9) & (letter > 5));
		digits[i] = decimal > 9 ? (unsigned char)(letter + 10) : decimal;
	}
	for (size_t i = 0; i < 16; i++)
		id[i] = (unsigned char)(digits[2 * i] << 4 | digits[2 * i + 1]);
	return bad == 0;
}

/* How much of `head` is there. */
static size_t head_len(const struct rv_identity *who)
{
	static const unsigned char lengths[] = { [KIND_UUID] = 16, [KIND_ATTEMPT] = 0, [KIND_LEGACY] = sizeof(double) };

	return lengths[who->kind];
}

static uint64_t rotate(uint64_t value, int by)
{
	return value << by | value >> (64 - by);
}

static inline void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32) + v[3];
	v[2] += v[1];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_round(v);
	v[0] ^= word;
}

/* A part by words, the last one filled up with zeros: lengths are compared with the bytes. */
static void sip_part(uint64_t v[4], const void *bytes, size_t len)
{
	const char *at = bytes;

	for (uint64_t word = 0; len > 0; word = 0) {
		size_t width = len < sizeof word ? len : sizeof word;

		memcpy(&word, at, width);
		sip_word(v, word);
		at += width;
		len -= width;
	}
}

/* SipHash-1-3 over kind, head and tail; a collision is found by comparing bytes. */
static uint32_t hash_of(const struct rv_pairs *pairs, const struct rv_identity *who)
{
	uint64_t v[4] = { pairs->seed[0] ^ 0x736f6d6570736575u, pairs->seed[1] ^ 0x646f72616e646f6du,
			  pairs->seed[0] ^ 0x6c7967656e657261u, pairs->seed[1] ^ 0x7465646279746573u };
	uint64_t folded;

	sip_part(v, who->head, head_len(who));
	sip_part(v, who->tail.data, who->tail.len);
	sip_word(v, who->kind | (uint64_t)who->tail.len << 8);
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	folded = v[0] ^ v[1] ^ v[2] ^ v[3];
	return (uint32_t)(folded ^ folded >> 32);
}

void rv_pairs_identify(const struct rv_pairs *pairs, const struct rv_row *row, struct rv_identity *who)
{
	who->tail = (struct rv_span){ "", 0 };
	if (row->attempt_id.data == NULL) {
		double started_at = row->started_at == 0 ? 0 : row->started_at; /* -0 is 0 */

		who->kind = KIND_LEGACY;
		memcpy(who->head, &started_at, sizeof started_at);
		who->tail = row->key;
	} else if (pack_uuid(row->attempt_id, who->head)) {
		who->kind = KIND_UUID;
	} else {
		who->kind = KIND_ATTEMPT;
		who->tail = row->attempt_id;
	}
	who->hash = hash_of(pairs, who);
}

struct rv_pairs *rv_pairs_new(struct rv_error *err)
{
	struct rv_pairs *pairs = calloc(1, sizeof *pairs);

	if (pairs == NULL) {
		(void)rv_error_nomem(err);
		return NULL;
	}
	rv_buffer_init(&pairs->text, 0);
	pairs->mask = FIRST_SLOTS - 1;
	pairs->slots = calloc(FIRST_SLOTS, sizeof *pairs->slots);
	if (pairs->slots == NULL)
		(void)rv_error_nomem(err);
	if (pairs->slots == NULL || rv_random(pairs->seed, sizeof pairs->seed, err) != 0) {
		rv_pairs_free(pairs);
		return NULL;
	}
	return pairs;
}

void rv_pairs_free(struct rv_pairs *pairs)
{
	if (pairs == NULL)
		return;
	free(pairs->entries);
	free(pairs->slots);
	rv_buffer_release(&pairs->text);
	free(pairs);
}

static bool is_same(const struct rv_pairs *pairs, const struct entry *entry, const struct rv_identity *who)
{
	uint64_t place[2]; /* offset and length in `text` */
	const char *text;

	if (entry->kind != who->kind)
		return false;
	if (who->kind == KIND_UUID)
		return memcmp(entry->id, who->head, sizeof who->head) == 0;
	memcpy(place, entry->id, sizeof place);
	if (place[1] != head_len(who) + who->tail.len)
		return false;
	if (place[1] == 0)
		return true;
	text = pairs->text.data + place[0];
	if (memcmp(text, who->head, head_len(who)) != 0)
		return false;
	return who->tail.len == 0 || memcmp(text + head_len(who), who->tail.data, who->tail.len) == 0;
}

/* The slot where the identity is, or where it would go. */
static uint32_t slot_of(const struct rv_pairs *pairs, const struct rv_identity *who)
{
	uint32_t slot = who->hash & pairs->mask;

	while (pairs->slots[slot].number != 0) {
		if (pairs->slots[slot].hash == who->hash && is_same(pairs, &pairs->entries[pairs->slots[slot].number - 1], who))
			break;
		slot = (slot + 1) & pairs->mask;
	}
	return slot;
}

/* Slots that so many entries leave a quarter of free. */
static bool is_room(uint32_t mask, double entries)
{
	return entries < mask / 4 * 3;
}

static int grow_slots(struct rv_pairs *pairs, struct rv_error *err)
{
	uint32_t mask = pairs->mask * 2 + 1;
	struct slot *slots;

	for (int step = 1; step < STEPS && !is_room(mask, pairs->expected); step++)
		mask = mask * 2 + 1;
	slots = rv_memory_zeroed(((size_t)mask + 1) * sizeof *slots);
	if (slots == NULL)
		return rv_error_nomem(err);
	for (size_t i = 0; i <= pairs->mask; i++) {
		uint32_t slot = pairs->slots[i].hash & mask;

		if (pairs->slots[i].number == 0)
			continue;
		while (slots[slot].number != 0)
			slot = (slot + 1) & mask;
		slots[slot] = pairs->slots[i];
	}
	free(pairs->slots);
	pairs->slots = slots;
	pairs->mask = mask;
	return 0;
}

static int grow_entries(struct rv_pairs *pairs, struct rv_error *err)
{
	uint32_t cap = pairs->cap == 0 ? FIRST_SLOTS / 2 : pairs->cap * 2;
	struct entry *entries;

	for (int step = 1; pairs->cap > 0 && step < STEPS && cap < pairs->expected; step++)
		cap *= 2;
	entries = rv_memory_grow(pairs->entries, pairs->count * sizeof *entries, cap * sizeof *entries);
	if (entries == NULL)
		return rv_error_nomem(err);
	pairs->entries = entries;
	pairs->cap = cap;
	return 0;
}

static int make_room(struct rv_pairs *pairs, struct rv_error *err)
{
	if (pairs->count == COUNT_MAX)
		return rv_error_set(err, RV_E_NOMEM, 0, "more than %u attempts", COUNT_MAX);
	if (pairs->count == pairs->cap && grow_entries(pairs, err) != 0)
		return -1;
	return is_room(pairs->mask, pairs->count) ? 0 : grow_slots(pairs, err);
}

void rv_pairs_expect(struct rv_pairs *pairs, double count)
{
	pairs->expected = count < COUNT_MAX ? count : COUNT_MAX;
}

uint32_t rv_pairs_count(const struct rv_pairs *pairs)
{
	return pairs->count;
}

static int store_identity(struct rv_pairs *pairs, struct entry *entry, const struct rv_identity *who, struct rv_error *err)
{
	uint64_t place[2] = { pairs->text.len, head_len(who) + who->tail.len };

	if (who->kind == KIND_UUID) {
		memcpy(entry->id, who->head, sizeof entry->id);
		return 0;
	}
	memcpy(entry->id, place, sizeof entry->id);
	rv_buffer_add(&pairs->text, who->head, head_len(who));
	rv_buffer_add(&pairs->text, who->tail.data, who->tail.len);
	return rv_buffer_check(&pairs->text, err);
}

int rv_pairs_mark_identity(struct rv_pairs *pairs, const struct rv_identity *who, enum rv_pair_mark mark,
			   uint32_t *entry, struct rv_error *err)
{
	uint32_t slot;

	if (make_room(pairs, err) != 0)
		return -1;
	slot = slot_of(pairs, who);
	if (pairs->slots[slot].number == 0) {
		struct entry *fresh = &pairs->entries[pairs->count];

		fresh->kind = who->kind;
		fresh->marks = 0;
		if (store_identity(pairs, fresh, who, err) != 0)
			return -1;
		pairs->slots[slot] = (struct slot){ .hash = who->hash, .number = ++pairs->count };
	}
	*entry = pairs->slots[slot].number - 1;
	pairs->entries[*entry].marks |= (uint8_t)mark;
	return 0;
}

bool rv_pairs_find_identity(const struct rv_pairs *pairs, const struct rv_identity *who, uint32_t *entry)
{
	uint32_t slot = slot_of(pairs, who);

	if (pairs->slots[slot].number == 0)
		return false;
	*entry = pairs->slots[slot].number - 1;
	return true;
}

void rv_pairs_fetch_slot(const struct rv_pairs *pairs, const struct rv_identity *who)
{
	__builtin_prefetch(&pairs->slots[who->hash & pairs->mask]);
}

void rv_pairs_fetch_entry(const struct rv_pairs *pairs, const struct rv_identity *who)
{
	uint32_t number = pairs->slots[who->hash & pairs->mask].number;

	if (number != 0)
		__builtin_prefetch(&pairs->entries[number - 1]);
}

int rv_pairs_mark(struct rv_pairs *pairs, const struct rv_row *row, enum rv_pair_mark mark, uint32_t *entry,
		  struct rv_error *err)
{
	struct rv_identity who;

	rv_pairs_identify(pairs, row, &who);
	return rv_pairs_mark_identity(pairs, &who, mark, entry, err);
}

bool rv_pairs_find(const struct rv_pairs *pairs, const struct rv_row *row, uint32_t *entry)
{
	struct rv_identity who;

	rv_pairs_identify(pairs, row, &who);
	return rv_pairs_find_identity(pairs, &who, entry);
}

unsigned rv_pairs_marks(const struct rv_pairs *pairs, uint32_t entry)
{
	return pairs->entries[entry].marks;
}
