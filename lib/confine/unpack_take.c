/* What a helper says of an archive, taken as an enemy's word: lengths are bounded, and only what is due is heard. */
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/confine/unpack.h"

void rv_unpack_taker_init(struct rv_unpack_taker *taker, struct rv_snapshot *snapshot)
{
	*taker = (struct rv_unpack_taker){ .snapshot = snapshot, .held = RV_BUFFER_INIT, .state = RV_TAKE_ENTRY,
					   .path = RV_BUFFER_INIT, .content = RV_BUFFER_INIT };
}

void rv_unpack_taker_release(struct rv_unpack_taker *taker)
{
	rv_buffer_release(&taker->held);
	rv_buffer_release(&taker->path);
	rv_buffer_release(&taker->content);
}

bool rv_unpack_taker_has_all(const struct rv_unpack_taker *taker)
{
	return taker->state == RV_TAKE_ENDED && taker->held.len == 0;
}

static int refuse(struct rv_span path, const char *why, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;

	rv_text_add_escaped(&text, path.data, path.len);
	return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: \"%.300s\": %s", text.len > 0 ? rv_buffer_string(&text) : "", why);
}

static int senseless(const char *what, struct rv_error *err)
{
	return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: no whole archive: what its reader says makes no sense: %s", what);
}

/* "./" before a path, and "/" behind a directory's, are how archives are written, and name nothing. */
static struct rv_span plain_path(struct rv_span path, bool directory)
{
	while (path.len >= 2 && path.data[0] == '.' && path.data[1] == '/') {
		path.data += 2;
		path.len -= 2;
	}
	if (directory && path.len > 0 && path.data[path.len - 1] == '/')
		path.len--;
	return path;
}

static int take_entry(struct rv_unpack_taker *taker, struct rv_span said, struct rv_error *err)
{
	unsigned flags = (unsigned char)said.data[0];
	bool directory = (flags & RV_UNPACK_DIRECTORY) != 0;
	struct rv_span path = plain_path((struct rv_span){ said.data + 1, said.len - 1 }, directory);

	if ((flags & RV_UNPACK_NAMELESS) != 0)
		return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: an entry without a name");
	if ((flags & RV_UNPACK_LINK) != 0)
		return refuse(path, "a link", err);
	if (!directory && (flags & RV_UNPACK_FILE) == 0)
		return refuse(path, "neither a file nor a directory", err);
	if ((flags & RV_UNPACK_SEALED) != 0)
		return refuse(path, "encrypted", err);
	if ((flags & RV_UNPACK_CUT) != 0)
		return refuse(path, "a path has at most 256 characters", err);
	if ((flags & ~(unsigned)(RV_UNPACK_DIRECTORY | RV_UNPACK_FILE)) != 0 || (directory && (flags & RV_UNPACK_FILE) != 0))
		return senseless("an entry of no kind", err);
	taker->state = directory ? RV_TAKE_NOTHING : RV_TAKE_CONTENT;
	if (directory && (path.len == 0 || (path.len == 1 && path.data[0] == '.')))
		return 0;
	if (rv_snapshot_check_path(path, err) != 0)
		return -1;
	rv_buffer_clear(&taker->path);
	rv_buffer_add(&taker->path, path.data, path.len);
	rv_buffer_clear(&taker->content);
	return rv_buffer_check(&taker->path, err);
}

static int take_content(struct rv_unpack_taker *taker, struct rv_span bytes, struct rv_error *err)
{
	if (rv_snapshot_check_room(taker->snapshot, taker->content.len + bytes.len, err) != 0)
		return -1;
	rv_buffer_add(&taker->content, bytes.data, bytes.len);
	return rv_buffer_check(&taker->content, err);
}

static int take_done(struct rv_unpack_taker *taker, char as_said, struct rv_error *err)
{
	struct rv_span path = { taker->path.data, taker->path.len };
	bool file = taker->state == RV_TAKE_CONTENT;

	taker->state = RV_TAKE_ENTRY;
	if (!file)
		return 0;
	if (as_said != 1)
		return refuse(path, "its content is not as long as the archive says", err);
	return rv_snapshot_add(taker->snapshot, path, &taker->content, err);
}

static int take_failure(enum rv_unpack_kind kind, struct rv_span text, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer escaped = RV_BUFFER_INIT;
	const char *words;

	rv_text_add_escaped(&escaped, text.data, text.len);
	words = escaped.len > 0 ? rv_buffer_string(&escaped) : "unreadable";
	if (words == NULL)
		return rv_error_nomem(err);
	if (kind == RV_UNPACK_FAILED)
		return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: no whole archive: %s", words);
	return rv_error_set(err, RV_E_IO, 0, "%s", words);
}

static int take_unstarted(struct rv_span bytes, struct rv_error *err)
{
	int32_t errnum;

	memcpy(&errnum, bytes.data, sizeof errnum);
	return rv_error_set(err, RV_E_IO, errnum, "snapshot: the helper that reads archives cannot be run");
}

/* The shortest and the longest that a kind may be; the longest of none is 0, as its shortest. */
static const struct form {
	enum rv_unpack_kind kind;
	size_t least, most;
} forms[] = {
	{ RV_UNPACK_ENTRY, 1, RV_UNPACK_BLOCK },       { RV_UNPACK_CONTENT, 1, RV_UNPACK_BLOCK }, { RV_UNPACK_DONE, 1, 1 },
	{ RV_UNPACK_END, 0, 0 },                       { RV_UNPACK_FAILED, 0, RV_UNPACK_TEXT_MAX },
	{ RV_UNPACK_BROKEN, 0, RV_UNPACK_TEXT_MAX },   { RV_UNPACK_UNSTARTED, sizeof(int32_t), sizeof(int32_t) },
};

static const struct form *form_of(char kind)
{
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		if ((char)forms[i].kind == kind)
			return &forms[i];
	}
	return NULL;
}

static int take_record(struct rv_unpack_taker *taker, enum rv_unpack_kind kind, struct rv_span bytes, struct rv_error *err)
{
	switch (kind) {
	case RV_UNPACK_ENTRY:
		return taker->state == RV_TAKE_ENTRY ? take_entry(taker, bytes, err) : senseless("an entry within one", err);
	case RV_UNPACK_CONTENT:
		return taker->state == RV_TAKE_CONTENT ? take_content(taker, bytes, err) : senseless("content of no file", err);
	case RV_UNPACK_DONE:
		return taker->state != RV_TAKE_ENTRY ? take_done(taker, bytes.data[0], err) : senseless("the end of no entry", err);
	case RV_UNPACK_END:
		if (taker->state != RV_TAKE_ENTRY)
			return senseless("an end within an entry", err);
		taker->state = RV_TAKE_ENDED;
		return 0;
	case RV_UNPACK_FAILED:
	case RV_UNPACK_BROKEN:
		return take_failure(kind, bytes, err);
	case RV_UNPACK_UNSTARTED:
		return take_unstarted(bytes, err);
	}
	return senseless("a record of no kind", err);
}

/* The length of the record that begins at `at`, its header with it; 0: the header is not whole yet. */
static int measure(const struct rv_unpack_taker *taker, size_t at, size_t *whole, struct rv_error *err)
{
	const char *head = taker->held.data + at;
	uint64_t length = 0;
	const struct form *form;

	*whole = 0;
	if (taker->state == RV_TAKE_ENDED)
		return senseless("more behind the end", err);
	form = form_of(head[0]);
	if (form == NULL)
		return senseless("a record of no kind", err);
	if (taker->held.len - at < RV_UNPACK_HEADER)
		return 0;
	for (int i = RV_UNPACK_HEADER - 1; i > 0; i--)
		length = length << 8 | (unsigned char)head[i];
	if (length < form->least || length > form->most)
		return senseless("a record of no such length", err);
	*whole = RV_UNPACK_HEADER + (size_t)length;
	return 0;
}

int rv_unpack_take(struct rv_unpack_taker *taker, const char *bytes, size_t len, struct rv_error *err)
{
	size_t at = 0;

	rv_buffer_add(&taker->held, bytes, len);
	if (rv_buffer_check(&taker->held, err) != 0)
		return -1;
	while (at < taker->held.len) {
		const char *head = taker->held.data + at;
		size_t whole;

		if (measure(taker, at, &whole, err) != 0)
			return -1;
		if (whole == 0 || taker->held.len - at < whole)
			break;
		if (take_record(taker, (enum rv_unpack_kind)head[0],
				(struct rv_span){ head + RV_UNPACK_HEADER, whole - RV_UNPACK_HEADER }, err) != 0)
			return -1;
		at += whole;
	}
	if (at > 0)
		memmove(taker->held.data, taker->held.data + at, taker->held.len - at);
	taker->held.len -= at;
	return 0;
}
