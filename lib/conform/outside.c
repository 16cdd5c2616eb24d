#include "lib/conform/outside.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 64

/* The port of 127.0.0.1, and of ::1 where there is one, on which TCP and UDP are listened to; 0: there is none. */
static int serve_ports(void)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	socklen_t size = sizeof four;
	int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int tcp6 = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (tcp < 0 || bind(tcp, (const struct sockaddr *)&four, sizeof four) != 0 || listen(tcp, BACKLOG) != 0 ||
	    getsockname(tcp, (struct sockaddr *)&four, &size) != 0)
		return 0;
	(void)bind(udp, (const struct sockaddr *)&four, sizeof four);
	six.sin6_port = four.sin_port;
	if (tcp6 >= 0 && bind(tcp6, (const struct sockaddr *)&six, sizeof six) == 0)
		(void)listen(tcp6, BACKLOG);
	return ntohs(four.sin_port);
}

/* A Unix socket that is listened to; a name that begins with NUL is abstract. */
static bool serve_name(const char *name, size_t len)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || len > sizeof address.sun_path)
		return false;
	memcpy(address.sun_path, name, len);
	return bind(fd, (const struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) == 0 &&
	       listen(fd, BACKLOG) == 0;
}

static bool serve_names(struct rv_trial *trial, const char *path, const char *name)
{
	char abstract[64] = "";
	size_t len = strlen(name);

	if (len + 1 > sizeof abstract)
		return rv_unexpected(trial, "a socket's name is too long");
	memcpy(abstract + 1, name, len);
	return rv_expect(trial, serve_name(path, strlen(path) + 1), "%s cannot be listened to: %s", path, strerror(errno)) &&
	       rv_expect(trial, serve_name(abstract, len + 1), "an abstract socket cannot be listened to: %s", strerror(errno));
}

static struct rv_command *start_witness(struct rv_trial *trial)
{
	const char *const argv[] = { "/bin/sleep", "3600", NULL };
	const struct rv_command_plan plan = { .argv = argv };

	return rv_trial_start(trial, &plan);
}

bool rv_outside_restore(struct rv_trial *trial, const struct rv_outside *outside)
{
	return rv_trial_write(trial, outside->victim, RV_SPAN("victim\n"), 0644);
}

bool rv_outside_open(struct rv_trial *trial, struct rv_outside *outside)
{
	const char *secret = rv_trial_path(trial, "secret");
	const char *alias = rv_trial_path(trial, "alias");
	const char *dir = rv_trial_path(trial, "outside");
	const char *socket_path = rv_trial_path(trial, "socket");
	const char *name = rv_trial_printf(trial, "rv-conform-%s", trial->nonce);
	struct rv_command *witness = start_witness(trial);
	int port = serve_ports();
	size_t n = 0;

	outside->victim = rv_trial_path(trial, "outside/victim");
	if (secret == NULL || alias == NULL || dir == NULL || socket_path == NULL || name == NULL || witness == NULL ||
	    outside->victim == NULL)
		return false;
	if (!rv_expect(trial, port != 0, "a port of 127.0.0.1 cannot be listened on: %s", strerror(errno)) ||
	    !serve_names(trial, socket_path, name) || !rv_trial_write(trial, secret, RV_SPAN("secret\n"), 0644) ||
	    !rv_expect(trial, symlink(secret, alias) == 0 && mkdir(dir, 0755) == 0, "%s: %s", dir, strerror(errno)) ||
	    !rv_outside_restore(trial, outside))
		return false;
	outside->keys[n++] = rv_trial_printf(trial, "secret=%s", secret);
	outside->keys[n++] = rv_trial_printf(trial, "alias=%s", alias);
	outside->keys[n++] = rv_trial_printf(trial, "dir=%s", dir);
	outside->keys[n++] = rv_trial_printf(trial, "pid=%d", (int)witness->child.pid);
	outside->keys[n++] = rv_trial_printf(trial, "port=%d", port);
	outside->keys[n++] = rv_trial_printf(trial, "unix=%s", socket_path);
	outside->keys[n++] = rv_trial_printf(trial, "abstract=%s", name);
	outside->keys[n] = NULL;
	for (size_t i = 0; i < n; i++) {
		if (outside->keys[i] == NULL)
			return false;
	}
	return true;
}
