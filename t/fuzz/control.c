/* Any bytes on the control channel, in any pieces: one answer however they are cut, admitted for one text alone, and
 * what once was malformed stays so.  The first byte is where to cut, the second whether a good report stands before. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/confine/control.h"
#include "lib/confine/launch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good)
{
	if (!good)
		abort();
}

static void feed(struct rv_control *control, const char *bytes, size_t len, size_t step)
{
	bool was = false;

	for (size_t at = 0; at < len; at += step) {
		size_t n = len - at < step ? len - at : step;

		rv_control_add(control, bytes + at, n);
		require(!was || rv_control_is_malformed(control));
		was = rv_control_is_malformed(control);
	}
	control->ended = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char bytes[1 << 17];
	struct rv_boundary_report report = { .size = sizeof report };
	struct rv_control cut = { .len = 0 }, whole = { .len = 0 };
	size_t len = 0;
	enum rv_admission one, other;

	if (size < 2 || size > sizeof bytes - sizeof report)
		return 0;
	if (data[1] % 2 == 1) {
		memcpy(bytes, &report, sizeof report);
		len = sizeof report;
	}
	memcpy(bytes + len, data + 2, size - 2);
	len += size - 2;
	feed(&cut, bytes, len, 1U + data[0]);
	feed(&whole, bytes, len, len > 0 ? len : 1);
	one = rv_control_admission(&cut);
	other = rv_control_admission(&whole);
	require(one == other && cut.exec_errno == whole.exec_errno);
	if (one == RV_ADMISSION_ADMITTED)
		require(len == sizeof report + strlen(RV_LAUNCH_ADMITTED) &&
			memcmp(bytes + sizeof report, RV_LAUNCH_ADMITTED, strlen(RV_LAUNCH_ADMITTED)) == 0);
	return 0;
}
