#include "lib/executor/isolation.h"

#include "lib/executor/dispatch.h"

const struct rv_isolation rv_isolation_none = { .on_host = false };

const char *rv_isolation_containment(const struct rv_dispatch *dispatch)
{
	const char *named = dispatch->executor->isolation->containment;

	return named != NULL ? named : rv_containment_name(dispatch->slot->containment);
}
