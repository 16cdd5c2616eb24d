#include "lib/base/error.h"

#include <stdio.h>
#include <string.h>

/* A cut must not leave half a UTF-8 character: drop its leading part. */
static void trim_partial(char *text, size_t len)
{
	size_t back = 0;

	while (back < 3 && back < len && ((unsigned char)text[len - 1 - back] & 0xC0) == 0x80)
		back++;
	if (back < len) {
		unsigned char lead = (unsigned char)text[len - 1 - back];
		size_t want = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;

		if (want > back)
			text[len - 1 - back] = '\0';
	}
}

__attribute__((format(printf, 3, 0))) static void format_into(char *out, size_t cap, const char *format, va_list args)
{
	int n = vsnprintf(out, cap, format, args);

	if (n < 0)
		out[0] = '\0';
	else if ((size_t)n >= cap)
		trim_partial(out, cap - 1);
}

int (rv_error_set)(struct rv_error *err, enum rv_code code, int errnum, const char *format, ...)
{
	char text[RV_ERROR_MESSAGE_MAX]; /* an argument may be err->message itself */
	va_list args;

	va_start(args, format);
	format_into(text, sizeof text, format, args);
	va_end(args);
	if (errnum != 0) {
		size_t len = strlen(text);

		(void)snprintf(text + len, sizeof text - len, ": %s", strerror(errnum));
	}
	err->code = code;
	err->errnum = errnum;
	memcpy(err->message, text, sizeof text);
	return -1;
}

int (rv_error_wrap)(struct rv_error *err, const char *format, ...)
{
	char text[RV_ERROR_MESSAGE_MAX];
	va_list args;
	size_t len;

	va_start(args, format);
	format_into(text, sizeof text, format, args);
	va_end(args);
	len = strlen(text);
	if ((size_t)snprintf(text + len, sizeof text - len, ": %s", err->message) >= sizeof text - len)
		trim_partial(text, sizeof text - 1);
	memcpy(err->message, text, sizeof text);
	return -1;
}

int (rv_error_nomem)(struct rv_error *err)
{
	return rv_error_set(err, RV_E_NOMEM, 0, "out of memory");
}

void rv_error_clear(struct rv_error *err)
{
	err->code = RV_E_NONE;
	err->errnum = 0;
	err->message[0] = '\0';
}

const char *rv_code_name(enum rv_code code)
{
	static const char *const names[] = {
		[RV_E_NONE] = "none",           [RV_E_USAGE] = "usage",
		[RV_E_REQUEST] = "request",     [RV_E_NUMBER] = "number",
		[RV_E_DERIVATION] = "derivation", [RV_E_CORRUPT] = "corrupt",
		[RV_E_IO] = "io",               [RV_E_NOMEM] = "memory",
		[RV_E_BUSY] = "busy",           [RV_E_CONFIG] = "config",
		[RV_E_TIMEOUT] = "timeout",     [RV_E_ABORTED] = "aborted",
		[RV_E_OUTPUT_CAP] = "output-cap", [RV_E_EXIT] = "exit",
		[RV_E_PROTOCOL] = "protocol",   [RV_E_SPAWN] = "spawn",
		[RV_E_SPAWN_MISSING] = "spawn", [RV_E_LEDGER] = "ledger",
		[RV_E_HOST] = "unsupported-host", [RV_E_RUNTIME] = "runtime-unavailable",
	};

	return names[code];
}
