#include "lib/confine/control.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"

#define EXEC "exec "
#define EXEC_DIGITS 5

void rv_control_add(struct rv_control *control, const char *bytes, size_t len)
{
	size_t room = sizeof control->bytes - 1 - control->len;

	if (len > room) {
		control->over = true;
		len = room;
	}
	memcpy(control->bytes + control->len, bytes, len);
	control->len += len;
	control->bytes[control->len] = '\0';
}

bool rv_control_report(const struct rv_control *control, struct rv_boundary_report *report)
{
	if (control->len < sizeof *report)
		return false;
	memcpy(report, control->bytes, sizeof *report);
	return report->size == sizeof *report;
}

/* The text behind the report. */
static struct rv_span text_of(const struct rv_control *control)
{
	size_t skip = sizeof(struct rv_boundary_report);

	if (control->len < skip)
		return (struct rv_span){ control->bytes, 0 };
	return (struct rv_span){ control->bytes + skip, control->len - skip };
}

static bool begins(struct rv_span text, const char *whole)
{
	size_t len = strlen(whole);

	return memcmp(text.data, whole, text.len < len ? text.len : len) == 0;
}

/* "exec N\n" or the beginning of it; its number where it is whole, else 0; -1: it cannot become that. */
static int exec_text(struct rv_span text)
{
	size_t skip = strlen(EXEC), i = skip;

	if (!begins(text, EXEC))
		return -1;
	if (text.len <= skip)
		return 0;
	while (i < text.len && text.data[i] >= '0' && text.data[i] <= '9')
		i++;
	if (i - skip > EXEC_DIGITS || i == skip)
		return -1;
	if (i == text.len)
		return 0;
	return text.data[i] == '\n' && i + 1 == text.len ? (int)strtol(text.data + skip, NULL, 10) : -1;
}

bool rv_control_is_malformed(const struct rv_control *control)
{
	struct rv_span text = text_of(control);
	size_t record = strlen(RV_LAUNCH_ADMITTED);
	struct rv_boundary_report report;

	if (control->over || text.len > RV_CONFINE_CONTROL_MAX)
		return true;
	if (control->len >= sizeof report && !rv_control_report(control, &report))
		return true;
	if (text.len <= record && begins(text, RV_LAUNCH_ADMITTED))
		return false;
	if (text.len > record && begins(text, RV_LAUNCH_ADMITTED))
		return exec_text((struct rv_span){ text.data + record, text.len - record }) < 0;
	return text.len > strlen(RV_LAUNCH_REFUSED) || !begins(text, RV_LAUNCH_REFUSED);
}

enum rv_admission rv_control_admission(struct rv_control *control)
{
	struct rv_span text = text_of(control);
	size_t record = strlen(RV_LAUNCH_ADMITTED);

	if (rv_control_is_malformed(control))
		return RV_ADMISSION_MALFORMED;
	if (text.len == 0)
		return control->refused ? RV_ADMISSION_REFUSED : RV_ADMISSION_ABSENT;
	if (!control->ended)
		return RV_ADMISSION_MALFORMED;
	if (text.len == record && begins(text, RV_LAUNCH_ADMITTED))
		return RV_ADMISSION_ADMITTED;
	if (rv_span_equal(text, RV_SPAN(RV_LAUNCH_REFUSED)))
		return RV_ADMISSION_REFUSED;
	control->exec_errno = text.len > record ? exec_text((struct rv_span){ text.data + record, text.len - record }) : 0;
	return control->exec_errno > 0 ? RV_ADMISSION_REFUSED : RV_ADMISSION_MALFORMED;
}
