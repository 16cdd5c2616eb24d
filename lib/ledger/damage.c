#include "lib/ledger/damage.h"

#include "lib/ledger/patch.h"

static bool is_busy(const struct rv_source *sources, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (rv_source_is_busy(&sources[i]))
			return true;
	}
	return false;
}

static int stands(const struct rv_scan *scan, const struct rv_source *sources, bool *unchanged, size_t *failed,
		  struct rv_error *err)
{
	*unchanged = true;
	for (size_t i = 0; i < scan->damage_count && *unchanged; i++) {
		const struct rv_damage *damage = &scan->damage[i];

		*failed = damage->place.file;
		if (rv_patch_holds(sources[*failed].fd, damage->place.offset, damage->place.len, damage->sha256, unchanged, err) != 0)
			return -1;
	}
	return 0;
}

int rv_damage_is_certain(const struct rv_scan *scan, const struct rv_source *sources, size_t count, bool *certain,
			 size_t *failed, struct rv_error *err)
{
	*certain = scan->damage_count == 0;
	return *certain || is_busy(sources, count) ? 0 : stands(scan, sources, certain, failed, err);
}
