/* One probe: a name and an attempt.  See probe.c. */
#ifndef RV_PROBES_PROBE_H
#define RV_PROBES_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum probe_key {
	KEY_NONE = 0, KEY_SECRET, KEY_DIR, KEY_ALIAS, KEY_AT, KEY_PID, KEY_PORT, KEY_UNIX, KEY_ABSTRACT, KEY_SNAPSHOT,
	KEY_SUID, PROBE_KEYS
};

extern const char *probe_value[PROBE_KEYS];
extern pid_t probe_parent; /* of the program: an attempt's own parent may be the program */

struct probe {
	const char *name;
	enum probe_key needs;
	int (*attempt)(void); /* 0: it had its effect; -1 with errno: it was refused */
};

#define PROBE_EXECUTED "--executed"
#define PROBE_END { NULL, KEY_NONE, NULL }

/* Each ended by PROBE_END. */
extern const struct probe probes_files[], probes_network[], probes_processes[], probes_kernel[];

/* What several attempts end with. */
int probe_close(int fd);                 /* -1 stays -1, a descriptor is closed: 0 */
int probe_read_path(const char *path);   /* open and read a byte */
int probe_exec_self(const char *word);   /* fork and exec this program: did it run? */
int probe_no(int errnum);                /* -1 with this errno */

#endif
