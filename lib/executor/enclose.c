#include "lib/executor/enclose.h"

#include "lib/executor/command.h"
#include "lib/executor/dispatch.h"

int rv_enclose_open(struct rv_enclose *enclose, struct rv_slots *slots, const char *const *readable,
		    const char *const *writable, bool net, const char *workdir_base, struct rv_error *err)
{
	const struct rv_policy *policy = net ? &rv_policy_kernel_net : &rv_policy_kernel;

	if (rv_kernel_init(&enclose->kernel, policy, readable, writable, net, workdir_base, err) != 0)
		return -1;
	enclose->enclosure = (struct rv_enclosure){ rv_kernel_prepare, rv_kernel_enter, &enclose->kernel };
	slots->enclosure = &enclose->enclosure;
	return 0;
}

void rv_enclose_release(struct rv_enclose *enclose)
{
	rv_kernel_release(&enclose->kernel);
}

/* A program that is not there inside would be said not to exist, which is true there and no help here. */
static int check(const struct rv_executor *executor, const struct rv_call *call, struct rv_error *err)
{
	const struct rv_enclose *enclose = executor->isolation_data;
	struct rv_buffer path = RV_BUFFER_INIT;
	struct rv_error missing = RV_ERROR_INIT;
	int result = 0;

	if (rv_command_find(&path, call->command, &missing) == 0 && path.data[0] == '/' &&
	    !rv_kernel_shows(&enclose->kernel, path.data))
		result = rv_error_set(err, RV_E_CONFIG, 0, "--sandbox kernel: %s is not in the sandbox (show it, with what it "
				      "needs: --ro DIR)", path.data);
	rv_buffer_release(&path);
	return result;
}

const struct rv_isolation rv_isolation_kernel = { .check = check };
