/*
 * Landlock (landlock(7)): what the file system, TCP, signals and abstract sockets are restricted to, with
 * whatever this kernel knows.  Rights are named here by our own numbers, since the system's header may be
 * older than its kernel; each is left out where the ABI lacks it, and the ABI that was used is told.
 */
#ifndef RV_SANDBOX_LANDLOCK_H
#define RV_SANDBOX_LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* LANDLOCK_ACCESS_FS_*, as the kernel numbers them. */
#define RV_FS_EXECUTE     (1ULL << 0)
#define RV_FS_WRITE_FILE  (1ULL << 1)
#define RV_FS_READ_FILE   (1ULL << 2)
#define RV_FS_READ_DIR    (1ULL << 3)
#define RV_FS_REMOVE_DIR  (1ULL << 4)
#define RV_FS_REMOVE_FILE (1ULL << 5)
#define RV_FS_MAKE_CHAR   (1ULL << 6)
#define RV_FS_MAKE_DIR    (1ULL << 7)
#define RV_FS_MAKE_REG    (1ULL << 8)
#define RV_FS_MAKE_SOCK   (1ULL << 9)
#define RV_FS_MAKE_FIFO   (1ULL << 10)
#define RV_FS_MAKE_BLOCK  (1ULL << 11)
#define RV_FS_MAKE_SYM    (1ULL << 12)
#define RV_FS_REFER       (1ULL << 13) /* ABI 2 */
#define RV_FS_TRUNCATE    (1ULL << 14) /* ABI 3 */
#define RV_FS_IOCTL_DEV   (1ULL << 15) /* ABI 5 */

#define RV_FS_READ  (RV_FS_READ_FILE | RV_FS_READ_DIR)
#define RV_FS_ALL   ((1ULL << 16) - 1)
#define RV_FS_WRITE (RV_FS_ALL & ~(RV_FS_READ | RV_FS_EXECUTE | RV_FS_MAKE_CHAR | RV_FS_MAKE_BLOCK | RV_FS_IOCTL_DEV))

/* What a ruleset takes away beside files. */
#define RV_LANDLOCK_TCP     (1U << 0) /* bind and connect; ABI 4 */
#define RV_LANDLOCK_SIGNALS (1U << 1) /* to processes outside; ABI 6 */
#define RV_LANDLOCK_SOCKETS (1U << 2) /* connecting to abstract Unix sockets outside; ABI 6 */

/* The ABI of this kernel; 0 where there is no Landlock (errno says why). */
int rv_landlock_abi(void);

/* A ruleset (a CLOEXEC descriptor) in which every right over files is handled, and the scopes as far as
 * the ABI has them.  -1 with errno. */
int rv_landlock_new(int abi, unsigned scopes);

/* Let `rights` at and below what `fd` (O_PATH) is; the rights that a file cannot have are left out for one
 * (on a file they would be EINVAL).  -1 with errno. */
int rv_landlock_allow(int ruleset, int abi, int fd, uint64_t rights);

/* For the calling thread and all that it starts; needs no_new_privs.  -1 with errno. */
int rv_landlock_restrict(int ruleset);

#endif
