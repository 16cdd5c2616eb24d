#include "lib/process/descend.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

struct process {
	pid_t pid;
	pid_t parent;
	char state;
	bool ours;
	bool spared;
	unsigned long long start; /* clock ticks since boot: with the pid, an identity */
};

struct table {
	struct process *rows; /* owned */
	size_t count;
	size_t room;
};

/* proc(5), /proc/pid/stat: the command name is in parentheses and may hold anything. */
static int read_stat(int proc, const char *name, struct process *process)
{
	char path[32];
	char text[1024];
	const char *behind;
	int parent;
	ssize_t n;
	rv_auto_fd int fd = -1;

	(void)snprintf(path, sizeof path, "%.16s/stat", name);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof text - 1);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	behind = strrchr(text, ')');
	if (behind == NULL ||
	    sscanf(behind + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		   &process->state, &parent, &process->start) != 3)
		return -1;
	process->pid = (pid_t)strtol(name, NULL, 10);
	process->parent = parent;
	process->ours = false;
	process->spared = false;
	return 0;
}

static int table_read(struct table *table, int proc)
{
	rv_auto_dir DIR *dir = fdopendir(fcntl(proc, F_DUPFD_CLOEXEC, 3));
	const struct dirent *entry;

	if (dir == NULL)
		return -1;
	rewinddir(dir);
	table->count = 0;
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		if (table->count == table->room) {
			size_t room = table->room == 0 ? 256 : table->room * 2;
			struct process *grown = realloc(table->rows, room * sizeof *grown);

			if (grown == NULL)
				return -1;
			table->rows = grown;
			table->room = room;
		}
		if (read_stat(proc, entry->d_name, &table->rows[table->count]) == 0)
			table->count++;
	}
	return 0;
}

static bool is_in(pid_t pid, const pid_t *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (list[i] == pid)
			return true;
	}
	return false;
}

/* Mark what descends from `self`, by rounds until nothing is added: no recursion, any order. */
static void mark(struct table *table, pid_t self, const pid_t *spare, size_t spared)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < table->count; i++) {
			struct process *process = &table->rows[i];

			if (process->ours || process->spared)
				continue;
			process->spared = process->parent == self && is_in(process->pid, spare, spared);
			process->ours = process->parent == self && !process->spared;
			for (size_t j = 0; j < table->count && !process->ours && !process->spared; j++) {
				const struct process *parent = &table->rows[j];

				if (parent->pid != process->parent)
					continue;
				process->ours = parent->ours;
				process->spared = parent->spared;
			}
			more = more || process->ours || process->spared;
		}
	}
}

/* The pid may have been given to another by now: hold it, look again, then signal. */
static void signal_exactly(int proc, const struct process *process, int signal_number)
{
	struct process now;
	char name[16];
	rv_auto_fd int pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);

	(void)snprintf(name, sizeof name, "%d", (int)process->pid);
	if (pidfd >= 0 && read_stat(proc, name, &now) == 0 && now.start == process->start)
		(void)syscall(SYS_pidfd_send_signal, pidfd, signal_number, NULL, 0);
}

/* To all that is marked; how many of them lived. */
static int signal_marked(int proc, const struct table *table, int signal_number)
{
	int alive = 0;

	for (size_t i = 0; i < table->count; i++) {
		const struct process *process = &table->rows[i];

		if (!process->ours || process->state == 'Z' || process->state == 'X')
			continue;
		alive++;
		if (signal_number != 0)
			signal_exactly(proc, process, signal_number);
	}
	return alive;
}

int rv_descend_signal(int signal_number, const pid_t *spare, size_t spared)
{
	struct table table = { NULL, 0, 0 };
	rv_auto_fd int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int alive = -1;

	if (proc >= 0 && table_read(&table, proc) == 0) {
		mark(&table, getpid(), spare, spared);
		alive = signal_marked(proc, &table, signal_number);
	}
	free(table.rows);
	return alive;
}

/* This process and what it descends from. */
static void spare_own_line(struct table *table)
{
	pid_t pid = getpid();
	size_t left = table->count;

	for (size_t i = 0; i < table->count && left > 0; i++) {
		if (table->rows[i].pid != pid)
			continue;
		table->rows[i].spared = true;
		pid = table->rows[i].parent;
		i = (size_t)-1; /* from the start again: a parent may stand anywhere */
		left--;
	}
}

int rv_descend_signal_meant(int signal_number, bool below, bool (*is_meant)(int proc, const char *pid, void *what),
			    void *what)
{
	struct table table = { NULL, 0, 0 };
	rv_auto_fd int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int alive = -1;

	if (proc >= 0 && table_read(&table, proc) == 0) {
		bool any = false;

		spare_own_line(&table);
		for (size_t i = 0; i < table.count; i++) {
			char name[16];

			(void)snprintf(name, sizeof name, "%d", (int)table.rows[i].pid);
			table.rows[i].ours = !table.rows[i].spared && is_meant(proc, name, what);
			table.rows[i].spared = false; /* what else descends from pid 1 is nobody's own */
			any = any || table.rows[i].ours;
		}
		if (any && below)
			mark(&table, -1, NULL, 0);
		alive = any ? signal_marked(proc, &table, signal_number) : 0;
	}
	free(table.rows);
	return alive;
}

int rv_descend_count_all(void)
{
	struct table table = { NULL, 0, 0 };
	rv_auto_fd int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int alive = 0;

	if (proc < 0 || table_read(&table, proc) != 0) {
		free(table.rows);
		return -1;
	}
	for (size_t i = 0; i < table.count; i++) {
		char state = table.rows[i].state;

		if (table.rows[i].pid != getpid() && state != 'Z' && state != 'X')
			alive++;
	}
	free(table.rows);
	return alive;
}
