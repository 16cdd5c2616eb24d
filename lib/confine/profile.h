/*
 * A profile's identity: the policy's tables (lib/sandbox), how a runtime is started behind it, and the bounds that the
 * supervision adds.  A changed entry of any of them is another digest (seed, "Profile digest").
 */
#ifndef RV_CONFINE_PROFILE_H
#define RV_CONFINE_PROFILE_H

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/confine/snapshot.h"
#include "lib/sandbox/policy.h"

#define RV_PROFILE_DEFAULT "linux/1"

struct rv_profile {
	const struct rv_policy *policy;
	struct rv_buffer text; /* canonical JSON of its tables: what the digest is over */
	char digest[RV_DIGEST_TEXT];
};

int rv_profile_describe(struct rv_profile *profile, const struct rv_policy *policy, struct rv_error *err);
/* Once more: where the text is what it was, so is the digest, at less cost. */
int rv_profile_refresh(struct rv_profile *profile, struct rv_error *err);
void rv_profile_release(struct rv_profile *profile);
/* {"name","digest","profile":TEXT} */
void rv_profile_add_json(const struct rv_profile *profile, struct rv_buffer *out);

/* "sha256:HEX" of some bytes. */
int rv_digest_of(const void *bytes, size_t len, char digest[RV_DIGEST_TEXT], struct rv_error *err);

#endif
