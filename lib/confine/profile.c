#include "lib/confine/profile.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/confine/launch.h"
#include "lib/confine/limits.h"
#include "lib/json/json.h"
#include "lib/json/write.h"

int rv_digest_of(const void *bytes, size_t len, char digest[RV_DIGEST_TEXT], struct rv_error *err)
{
	struct rv_sha256 *sha = rv_sha256_new(err);
	int result;

	memcpy(digest, "sha256:", 7);
	result = sha != NULL ? rv_sha256_hex(sha, bytes, len, digest + 7, err) : -1;
	rv_sha256_free(sha);
	return result;
}

static void add_bounds(struct rv_buffer *out)
{
	rv_json_add_name(out, "bounds");
	rv_buffer_add_byte(out, '{');
	rv_json_member_int(out, "closeGraceMs", RV_CONFINE_CLOSE_GRACE_MS);
	rv_json_member_int(out, "controlBytes", RV_CONFINE_CONTROL_MAX);
	rv_json_member_int(out, "killConfirmMs", RV_CONFINE_KILL_CONFIRM_MS);
	rv_json_member_int(out, "maxDescriptors", RV_CONFINE_DESCRIPTORS_MAX);
	rv_buffer_add_byte(out, '}');
}

int rv_profile_describe(struct rv_profile *profile, const struct rv_policy *policy, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	struct rv_json_doc *doc = rv_json_doc_new(err);
	const struct rv_json_node *root = NULL;
	int result = -1;

	*profile = (struct rv_profile){ .policy = policy, .text = RV_BUFFER_INIT };
	rv_buffer_add_byte(&text, '{');
	rv_json_member_string(&text, "name", policy->name);
	rv_json_add_name(&text, "policy");
	rv_policy_render(&text, policy);
	rv_launch_add_json(&text);
	add_bounds(&text);
	rv_buffer_add_byte(&text, '}');
	if (doc != NULL && rv_buffer_check(&text, err) == 0)
		root = rv_json_parse(doc, text.data, text.len, RV_JSON_DEFAULT, err);
	if (root != NULL && rv_json_canonical(root, &profile->text, err) == 0 && rv_buffer_check(&profile->text, err) == 0)
		result = rv_digest_of(profile->text.data, profile->text.len, profile->digest, err);
	rv_json_doc_free(doc);
	return result;
}

void rv_profile_release(struct rv_profile *profile)
{
	rv_buffer_release(&profile->text);
}

void rv_profile_add_json(const struct rv_profile *profile, struct rv_buffer *out)
{
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "name", profile->policy->name);
	rv_json_member_string(out, "digest", profile->digest);
	rv_json_member_raw(out, "profile", (struct rv_span){ profile->text.data, profile->text.len });
	rv_buffer_add_byte(out, '}');
}
