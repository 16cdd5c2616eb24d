/*
 * A tree -> text, without recursion: a stack of frames, one for each open container, and beside it
 * a stack of members, since an object's must be put in order before they are written.  The two
 * live in the walk itself until a document is deep or wide.
 */
#include "lib/json/write.h"

#include <stdlib.h>
#include <string.h>

#include "lib/json/tree.h"

#define FEW_FRAMES 24
#define FEW_ITEMS 64

struct frame {
	const struct rv_json_node *next; /* an array's next element */
	size_t at;                       /* an object's members: the next in the stack of items, */
	size_t end;                      /* their end */
	size_t base;                     /* and where the stack ends again afterwards */
	char close;
	bool first;
};

struct walk {
	struct rv_buffer *out;
	bool canonical; /* else JSON.stringify */
	struct frame *frames;
	size_t depth;
	size_t frames_size;
	struct rv_item *items;
	size_t used;
	size_t items_size;
	struct frame few_frames[FEW_FRAMES];
	struct rv_item few_items[FEW_ITEMS];
};

/* One of the stacks with room for at least `least` elements; `few` is where it started. */
static void *grow(void *stack, const void *few, size_t *size, size_t least, size_t element)
{
	size_t want = *size;
	void *grown;

	while (want < least)
		want *= 2;
	if (want > SIZE_MAX / element)
		return NULL;
	grown = realloc(stack == few ? NULL : stack, want * element);
	if (grown == NULL)
		return NULL;
	if (stack == few)
		memcpy(grown, few, *size * element);
	*size = want;
	return grown;
}

static bool room_for_frame(struct walk *walk)
{
	void *grown;

	if (walk->depth < walk->frames_size)
		return true;
	grown = grow(walk->frames, walk->few_frames, &walk->frames_size, walk->depth + 1, sizeof *walk->frames);
	if (grown != NULL)
		walk->frames = grown;
	return grown != NULL;
}

static bool room_for_items(struct walk *walk, size_t count)
{
	void *grown;

	if (walk->items_size - walk->used >= count)
		return true;
	grown = grow(walk->items, walk->few_items, &walk->items_size, walk->used + count, sizeof *walk->items);
	if (grown != NULL)
		walk->items = grown;
	return grown != NULL;
}

static bool list_members(struct walk *walk, const struct rv_json_node *object, struct frame *frame)
{
	size_t count = rv_members_count(object);
	struct rv_item *items;

	if (!room_for_items(walk, 2 * count))
		return false;
	items = walk->items + walk->used;
	rv_members_list(object, items);
	if (count > 1)
		count = walk->canonical ? rv_items_order_canonical(items, items + count, count)
					: rv_items_order_engine(items, items + count, count);
	frame->at = walk->used;
	walk->used += count;
	frame->end = walk->used;
	return true;
}

static bool open_container(struct walk *walk, const struct rv_json_node *node)
{
	bool object = rv_node_type(node) == RV_JSON_OBJECT;
	struct frame *frame;

	if (!room_for_frame(walk))
		return false;
	frame = &walk->frames[walk->depth++];
	*frame = (struct frame){ .base = walk->used, .close = object ? '}' : ']', .first = true };
	rv_buffer_add_byte(walk->out, object ? '{' : '[');
	if (object)
		return list_members(walk, node, frame);
	frame->next = node->v.list.first;
	return true;
}

/* The next child of the innermost container, its comma and name written; NULL at its end. */
static const struct rv_json_node *step(struct walk *walk)
{
	struct frame *frame = &walk->frames[walk->depth - 1];
	const struct rv_json_node *child = frame->next;

	if (frame->at == frame->end && child == NULL)
		return NULL;
	if (!frame->first)
		rv_buffer_add_byte(walk->out, ',');
	frame->first = false;
	if (child != NULL) {
		frame->next = child->next;
	} else {
		child = walk->items[frame->at++].node;
		rv_json_add_wtf8(walk->out, rv_node_name(child));
		rv_buffer_add_byte(walk->out, ':');
	}
	return child;
}

static int write_number(const struct walk *walk, struct rv_span text, struct rv_error *err)
{
	if (rv_number_add_canonical(walk->out, text))
		return 0;
	if (walk->canonical)
		return rv_error_set(err, RV_E_NUMBER, 0, "a number overflows a double");
	rv_buffer_add(walk->out, "null", 4);
	return 0;
}

static int write_node(struct walk *walk, const struct rv_json_node *node, struct rv_error *err)
{
	switch (rv_node_type(node)) {
	case RV_JSON_NULL:
		rv_buffer_add(walk->out, "null", 4);
		return 0;
	case RV_JSON_FALSE:
		rv_buffer_add(walk->out, "false", 5);
		return 0;
	case RV_JSON_TRUE:
		rv_buffer_add(walk->out, "true", 4);
		return 0;
	case RV_JSON_NUMBER:
		return write_number(walk, node->v.text, err);
	case RV_JSON_STRING:
		rv_json_add_wtf8(walk->out, node->v.text);
		return 0;
	case RV_JSON_ARRAY:
	case RV_JSON_OBJECT:
		break;
	}
	return open_container(walk, node) ? 0 : rv_error_nomem(err);
}

static int write_tree(struct walk *walk, const struct rv_json_node *root, struct rv_error *err)
{
	int result = write_node(walk, root, err);

	while (result == 0 && walk->depth > 0 && !walk->out->failed) {
		const struct rv_json_node *child = step(walk);

		if (child != NULL) {
			result = write_node(walk, child, err);
		} else {
			struct frame *frame = &walk->frames[--walk->depth];

			rv_buffer_add_byte(walk->out, frame->close);
			walk->used = frame->base;
		}
	}
	return result != 0 ? result : rv_buffer_check(walk->out, err);
}

static int write_as(const struct rv_json_node *root, bool canonical, struct rv_buffer *out, struct rv_error *err)
{
	struct walk walk;
	int result;

	walk.out = out;
	walk.canonical = canonical;
	walk.frames = walk.few_frames;
	walk.frames_size = FEW_FRAMES;
	walk.depth = 0;
	walk.items = walk.few_items;
	walk.items_size = FEW_ITEMS;
	walk.used = 0;
	result = write_tree(&walk, root, err);
	if (walk.frames != walk.few_frames)
		free(walk.frames);
	if (walk.items != walk.few_items)
		free(walk.items);
	return result;
}

int rv_json_canonical(const struct rv_json_node *node, struct rv_buffer *out, struct rv_error *err)
{
	return write_as(node, true, out, err);
}

int rv_json_stringify(const struct rv_json_node *node, struct rv_buffer *out, struct rv_error *err)
{
	return write_as(node, false, out, err);
}
