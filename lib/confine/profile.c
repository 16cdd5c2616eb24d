#include "lib/confine/profile.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/confine/launch.h"
#include "lib/confine/limits.h"
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

/* Canonical as it is written: the members of every object by name, here and in what is called.  No run then parses and
 * sorts 20 KiB; that it is canonical is what t/3010 holds it to. */
static int render(struct rv_buffer *out, const struct rv_policy *policy, struct rv_error *err)
{
	rv_buffer_add_byte(out, '{');
	add_bounds(out);
	rv_launch_add_json(out);
	rv_json_member_string(out, "name", policy->name);
	rv_json_add_name(out, "policy");
	rv_policy_render(out, policy);
	rv_buffer_add_byte(out, '}');
	return rv_buffer_check(out, err);
}

static int digest_text(struct rv_profile *profile, struct rv_error *err)
{
	int result = rv_digest_of(profile->text.data, profile->text.len, profile->digest, err);

	if (result != 0)
		rv_buffer_clear(&profile->text); /* what has no digest is not taken for what had one */
	return result;
}

int rv_profile_describe(struct rv_profile *profile, const struct rv_policy *policy, struct rv_error *err)
{
	*profile = (struct rv_profile){ .policy = policy, .text = RV_BUFFER_INIT };
	return render(&profile->text, policy, err) == 0 ? digest_text(profile, err) : -1;
}

int rv_profile_refresh(struct rv_profile *profile, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer now = RV_BUFFER_INIT, before = profile->text;

	if (render(&now, profile->policy, err) != 0) {
		before = (struct rv_buffer)RV_BUFFER_INIT; /* is kept */
		return -1;
	}
	profile->text = now;
	now = (struct rv_buffer)RV_BUFFER_INIT;
	if (before.len == profile->text.len && memcmp(before.data, profile->text.data, before.len) == 0)
		return 0;
	return digest_text(profile, err);
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
