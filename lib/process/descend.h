/*
 * Walking a process's descendants in /proc: what is left to do where no PID namespace holds them.
 * It is a best effort by nature (a tree that forks faster than it is read may outrun it), and says
 * how many it left.
 */
#ifndef RV_PROCESS_DESCEND_H
#define RV_PROCESS_DESCEND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Send `signal_number` to every descendant of this process but those in `spare` and what is below
 * them.  Returns how many living (not zombie) ones there were, -1 if /proc cannot be read. */
int rv_descend_signal(int signal_number, const pid_t *spare, size_t spared);

/* The same for every process that `is_meant` says, and, where `below`, all that descends from them; `pid` is its name in
 * /proc, which `proc` is open on.  Never this process, nor one that it descends from. */
int rv_descend_signal_meant(int signal_number, bool below, bool (*is_meant)(int proc, const char *pid, void *what),
			    void *what);

/* How many processes but this one are alive in this procfs; -1 if it cannot be read.  For pid 1 of
 * a PID namespace with a procfs of its own. */
int rv_descend_count_all(void);

#endif
