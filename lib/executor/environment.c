#include "lib/executor/environment.h"

#include <stdlib.h>
#include <string.h>

static void forget(char *entry)
{
	if (entry != NULL)
		explicit_bzero(entry, strlen(entry));
	free(entry);
}

static int grow(struct rv_environment *env, struct rv_error *err)
{
	size_t room = env->room == 0 ? 16 : env->room * 2;
	char **grown;

	if (env->count + 1 < env->room)
		return 0;
	grown = realloc(env->entries, room * sizeof *grown);
	if (grown == NULL)
		return rv_error_nomem(err);
	env->entries = grown;
	env->room = room;
	return 0;
}

int rv_environment_set(struct rv_environment *env, struct rv_span name, struct rv_span value, struct rv_error *err)
{
	char *entry;

	if (name.len == 0 || memchr(name.data, '=', name.len) != NULL || memchr(name.data, '\0', name.len) != NULL)
		return rv_error_set(err, RV_E_CONFIG, 0, "not a variable's name: %.*s", (int)name.len, name.data);
	if (value.len > 0 && memchr(value.data, '\0', value.len) != NULL)
		return rv_error_set(err, RV_E_CONFIG, 0, "the value of %.*s holds a NUL", (int)name.len, name.data);
	if (grow(env, err) != 0)
		return -1;
	entry = malloc(name.len + value.len + 2);
	if (entry == NULL)
		return rv_error_nomem(err);
	memcpy(entry, name.data, name.len);
	entry[name.len] = '=';
	if (value.len > 0)
		memcpy(entry + name.len + 1, value.data, value.len);
	entry[name.len + 1 + value.len] = '\0';
	for (size_t i = 0; i < env->count; i++) {
		if (strncmp(env->entries[i], entry, name.len + 1) == 0) {
			forget(env->entries[i]);
			env->entries[i] = entry;
			return 0;
		}
	}
	env->entries[env->count++] = entry;
	env->entries[env->count] = NULL;
	return 0;
}

int rv_environment_put(struct rv_environment *env, const char *assignment, struct rv_error *err)
{
	const char *equals = strchr(assignment, '=');

	if (equals == NULL) /* the text may be a secret that was meant as a value: not repeated */
		return rv_error_set(err, RV_E_CONFIG, 0, "not NAME=VALUE");
	return rv_environment_set(env, (struct rv_span){ assignment, (size_t)(equals - assignment) },
				  rv_span_of(equals + 1), err);
}

int rv_environment_allow(struct rv_environment *env, const char *name, struct rv_error *err)
{
	/* what is no name at all is for the setter to refuse */
	const char *value = name[0] != '\0' && strchr(name, '=') == NULL ? getenv(name) : "";

	return value == NULL ? 0 : rv_environment_set(env, rv_span_of(name), rv_span_of(value), err);
}

void rv_environment_release(struct rv_environment *env)
{
	for (size_t i = 0; i < env->count; i++)
		forget(env->entries[i]);
	free(env->entries);
	*env = (struct rv_environment)RV_ENVIRONMENT_INIT;
}
