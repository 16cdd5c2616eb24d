/* The file systems on which neither locks nor appends can be relied on. */
#ifndef RV_LEDGER_FS_H
#define RV_LEDGER_FS_H

#include <stdint.h>

#include "lib/base/error.h"

/* The name of a network or FUSE file system by its statfs(2) magic, or NULL where it is local. */
const char *rv_fs_remote_name(uint32_t magic);

/* RV_E_LEDGER where the open file lies on one of them. */
int rv_fs_check(int fd, struct rv_error *err);

#endif
