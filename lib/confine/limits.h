/*
 * Every bound of a confined run, in one place: rv-confine-profile(7) lists them, and those that bound the
 * run itself are part of the profile's digest (profile.h).
 */
#ifndef RV_CONFINE_LIMITS_H
#define RV_CONFINE_LIMITS_H

/* Slots under one root. */
#define RV_CONFINE_MAX_RETAINED 64
#define RV_CONFINE_RETAINED 8 /* if not said */

/* A snapshot. */
#define RV_SNAPSHOT_BYTES_MAX ((size_t)64 << 20)
#define RV_SNAPSHOT_FILES_MAX 4096
#define RV_SNAPSHOT_PATH_MAX 256    /* characters, all of them one byte */
#define RV_SNAPSHOT_SEGMENTS_MAX 16

/* The process that reads an archive. */
#define RV_UNPACK_CPU_S 60
#define RV_UNPACK_WALL_MS 300000
#define RV_UNPACK_MEMORY ((uint64_t)2 << 30) /* address space: a dictionary of 1 GiB, and what is around it */

/* A request: bounds and their defaults. */
#define RV_CONFINE_TIMEOUT_MAX_MS 3600000
#define RV_CONFINE_TIMEOUT_MS 30000
#define RV_CONFINE_OUTPUT_MAX ((int64_t)64 << 20)
#define RV_CONFINE_OUTPUT ((int64_t)1 << 20)
#define RV_CONFINE_CPU_MAX_S 3600
#define RV_CONFINE_CPU_S 30
#define RV_CONFINE_DESCRIPTORS_MIN 16
#define RV_CONFINE_DESCRIPTORS_MAX 900
#define RV_CONFINE_DESCRIPTORS 64
#define RV_CONFINE_DATA_MIN ((int64_t)1 << 20)
#define RV_CONFINE_DATA_MAX ((int64_t)1 << 40)
#define RV_CONFINE_DATA ((int64_t)1 << 30)
#define RV_CONFINE_MEMORY_MIN ((int64_t)1 << 20)
#define RV_CONFINE_MEMORY_MAX ((int64_t)1 << 40)
#define RV_CONFINE_ARGS_MAX 256
#define RV_CONFINE_ARGS_BYTES_MAX 65536 /* with a NUL each */
#define RV_CONFINE_TREES_MAX 32

/* A run. */
#define RV_CONFINE_CLOSE_GRACE_MS 500    /* from the exit to the end of waiting for the pipes */
#define RV_CONFINE_KILL_CONFIRM_MS 5000  /* from a stop to the end of waiting for the exit */
#define RV_CONFINE_CONTROL_MAX 1024      /* bytes on descriptor 3, in all */
#define RV_CONFINE_EVENT_MS 10000        /* one program of --on-event */
#define RV_CONFINE_MEMORY_WATCH_MS 10    /* between two looks at the resident size */

#endif
