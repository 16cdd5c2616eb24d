#include "lib/conform/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/conform/suites.h"

const char *rv_capability_name(size_t index)
{
	static const char *const names[RV_CAPABILITIES] = {
		"ledger", "two-phase", "credentials", "contain", "abort", "key", "keys", "canonical", "scan", "repair",
		"stream", "confine", "kernel", "container", "manifest", "approvals",
	};

	return index < RV_CAPABILITIES ? names[index] : NULL;
}

static const struct rv_check *const executor_tables[] = {
	rv_checks_first, rv_checks_crash, rv_checks_protocol, rv_checks_environment, rv_checks_tool, rv_checks_time,
	rv_checks_tree, rv_checks_output, rv_checks_spawn, rv_checks_workdir, rv_checks_credentials, rv_checks_rows,
	rv_checks_identity, rv_checks_manifest, rv_checks_hostile, rv_checks_hostile_ends, NULL,
};

static const struct rv_check *const ledger_tables[] = { rv_checks_scan, rv_checks_repair, rv_checks_append, NULL };

static const struct rv_check *const key_tables[] = { rv_checks_key, rv_checks_canonical, NULL };

static const struct rv_check *const confine_tables[] = {
	rv_checks_confine, rv_checks_confine_faults, rv_checks_confine_forms, NULL,
};

static const struct rv_check *const kernel_tables[] = { rv_checks_kernel, rv_checks_enclosed, NULL };

static const struct rv_check *const container_tables[] = { rv_checks_container, NULL };

const struct rv_suite rv_suites[] = {
	{ "executor", "a tool is run out of process, bounded and accounted for", executor_tables, false },
	{ "ledger", "rows are never lost, glued or forged by a crash", ledger_tables, false },
	{ "key", "keys and canonical JSON, byte for byte", key_tables, false },
	{ "kernel", "the sandbox that needs no other program", kernel_tables, false },
	{ "container", "a tool in a one-shot container", container_tables, true },
	{ "confine", "one program behind a boundary, and what was observed", confine_tables, false },
	{ NULL, NULL, NULL, false },
};

void rv_note_clear(struct rv_note *note)
{
	note->len = 0;
}

void rv_note_add(struct rv_note *note, const void *bytes, size_t len)
{
	static const char more[] = "...";
	size_t room = sizeof note->text - sizeof more - note->len;

	if (note->len > sizeof note->text - sizeof more)
		return;
	if (len <= room) {
		memcpy(note->text + note->len, bytes, len);
		note->len += (uint32_t)len;
		return;
	}
	memcpy(note->text + note->len, bytes, room);
	memcpy(note->text + note->len + room, more, sizeof more - 1);
	note->len += (uint32_t)(room + sizeof more - 1);
}

void rv_note_printf(struct rv_note *note, const char *format, ...)
{
	char text[1024];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (n > 0)
		rv_note_add(note, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}
