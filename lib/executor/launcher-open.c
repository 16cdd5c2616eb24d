/* What the command line makes of a launcher: its words, its environment, and the helper it ends in. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/helper.h"
#include "lib/executor/command.h"
#include "lib/executor/launcher.h"

const char *const rv_launcher_names[] = {
	"PATH", "HOME", "XDG_RUNTIME_DIR", "DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", NULL,
};

int rv_launcher_environment(struct rv_environment *env, const char *const *more, struct rv_error *err)
{
	for (size_t i = 0; rv_launcher_names[i] != NULL; i++) {
		if (rv_environment_allow(env, rv_launcher_names[i], err) != 0)
			return -1;
	}
	for (size_t i = 0; more[i] != NULL; i++) {
		if (rv_environment_allow(env, more[i], err) != 0)
			return rv_error_wrap(err, "--launcher-env");
	}
	/* an environment that is there, if only empty */
	return env->entries != NULL ? 0 : rv_environment_set(env, RV_SPAN("PATH"), RV_SPAN("/usr/bin:/bin"), err);
}

/* What every launcher ends in. */
static int find_inner(struct rv_buffer *path, struct rv_error *err)
{
	return rv_helper_find(path, "rv-inner", err);
}

static int finish(struct rv_launcher *launcher, char *const *envp, struct rv_error *err)
{
	launcher->envp = envp;
	if (rv_words_list(&launcher->words, err) == NULL || rv_words_list(&launcher->shown, err) == NULL)
		return -1;
	if (rv_command_find(&launcher->path, launcher->words.list[0], err) != 0) {
		err->code = RV_E_CONFIG;
		return rv_error_wrap(err, "the launcher");
	}
	if (access(launcher->path.data, X_OK) != 0)
		return rv_error_set(err, RV_E_CONFIG, errno, "the launcher %s", launcher->path.data);
	return 0;
}

int rv_launcher_open(struct rv_launcher *launcher, const char *words, char *const *envp, struct rv_error *err)
{
	rv_auto_free char **split = NULL;
	const char *slash;
	size_t count = 0;

	if (rv_text_split(words, &split, &count, err) != 0 || count == 0) {
		if (err->code == RV_E_NONE)
			(void)rv_error_set(err, RV_E_CONFIG, 0, "no launcher is named");
		err->code = RV_E_CONFIG;
		return -1;
	}
	for (size_t i = 0; i < count; i++)
		rv_words_add(&launcher->words, split[i]);
	slash = strrchr(split[0], '/');
	rv_buffer_printf(&launcher->name, "argv:%s", slash != NULL ? slash + 1 : split[0]);
	if (rv_buffer_string(&launcher->name) == NULL)
		return rv_error_nomem(err);
	return find_inner(&launcher->inner, err) != 0 ? -1 : finish(launcher, envp, err);
}

/* ---- the preset ---- */

static void add_words(struct rv_launcher *launcher, const char *first, const char *second, const char *third)
{
	rv_words_add(&launcher->words, first);
	if (second != NULL)
		rv_words_add(&launcher->words, second);
	if (third != NULL)
		rv_words_add(&launcher->words, third);
}

/* /bin is a link on most systems and a directory on some; what is not here at all is not missed. */
static void show_system(struct rv_launcher *launcher)
{
	static const char *const tops[] = { "/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32" };
	static const char *const files[] = { "/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime" };

	for (size_t i = 0; i < sizeof tops / sizeof tops[0]; i++) {
		char target[PATH_MAX];
		ssize_t len = readlink(tops[i], target, sizeof target - 1);

		if (len > 0) {
			target[len] = '\0';
			add_words(launcher, "--symlink", target, tops[i]);
		} else if (access(tops[i], F_OK) == 0) {
			add_words(launcher, "--ro-bind", tops[i], tops[i]);
		}
		rv_words_add(&launcher->shown, tops[i]);
	}
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		add_words(launcher, "--ro-bind-try", files[i], files[i]);
}

static int show_paths(struct rv_launcher *launcher, const char *option, const char *flag, const char *const *paths,
		      struct rv_error *err)
{
	for (size_t i = 0; paths[i] != NULL; i++) {
		rv_auto_free char *real = realpath(paths[i], NULL);

		if (real == NULL)
			return rv_error_set(err, RV_E_CONFIG, errno, "%s %s", option, paths[i]);
		if (paths[i][0] != '/')
			return rv_error_set(err, RV_E_CONFIG, 0, "%s %s: not an absolute path", option, paths[i]);
		add_words(launcher, flag, real, paths[i]);
		rv_words_add(&launcher->shown, real);
	}
	return 0;
}

int rv_launcher_open_bwrap(struct rv_launcher *launcher, const char *const *ro, const char *const *rw,
			   char *const *envp, struct rv_error *err)
{
	static const char *const how[] = {
		"bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--proc", "/proc",
		"--dev", "/dev", "--tmpfs", "/tmp", NULL,
	};

	rv_words_add_all(&launcher->words, how);
	show_system(launcher);
	if (show_paths(launcher, "--ro", "--ro-bind", ro, err) != 0 || show_paths(launcher, "--rw", "--bind", rw, err) != 0 ||
	    find_inner(&launcher->inner, err) != 0)
		return -1;
	add_words(launcher, "--ro-bind", launcher->inner.data, launcher->inner.data);
	add_words(launcher, "--bind", "{workdir}", "{workdir}");
	add_words(launcher, "--chdir", "{workdir}", "--");
	launcher->hides = true;
	rv_buffer_add_string(&launcher->name, "bwrap");
	if (rv_buffer_string(&launcher->name) == NULL)
		return rv_error_nomem(err);
	if (finish(launcher, envp, err) != 0)
		return rv_error_wrap(err, "--sandbox bwrap (install the Debian package bubblewrap)");
	return 0;
}

void rv_launcher_release(struct rv_launcher *launcher)
{
	rv_words_release(&launcher->words);
	rv_words_release(&launcher->shown);
	rv_buffer_release(&launcher->path);
	rv_buffer_release(&launcher->inner);
	rv_buffer_release(&launcher->name);
}
