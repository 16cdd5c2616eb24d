/* The tables of checks, one a file of lib/conform/suite_*.c.  Each ends with an id of NULL. */
#ifndef RV_CONFORM_SUITES_H
#define RV_CONFORM_SUITES_H

#include "lib/conform/check.h"

/* executor */
extern const struct rv_check rv_checks_first[];
extern const struct rv_check rv_checks_protocol[];
extern const struct rv_check rv_checks_environment[];
extern const struct rv_check rv_checks_time[];
extern const struct rv_check rv_checks_tree[];
extern const struct rv_check rv_checks_tool[];
extern const struct rv_check rv_checks_output[];
extern const struct rv_check rv_checks_spawn[];
extern const struct rv_check rv_checks_workdir[];
extern const struct rv_check rv_checks_credentials[];
extern const struct rv_check rv_checks_rows[];
extern const struct rv_check rv_checks_crash[];
extern const struct rv_check rv_checks_identity[];
extern const struct rv_check rv_checks_manifest[];
extern const struct rv_check rv_checks_hostile[];
extern const struct rv_check rv_checks_hostile_ends[];

/* ledger */
extern const struct rv_check rv_checks_scan[];
extern const struct rv_check rv_checks_repair[];
extern const struct rv_check rv_checks_append[];

/* key */
extern const struct rv_check rv_checks_key[];
extern const struct rv_check rv_checks_canonical[];

/* kernel */
extern const struct rv_check rv_checks_kernel[];
extern const struct rv_check rv_checks_enclosed[];

/* container */
extern const struct rv_check rv_checks_container[];

/* confine */
extern const struct rv_check rv_checks_confine[];
extern const struct rv_check rv_checks_confine_faults[];
extern const struct rv_check rv_checks_confine_forms[];

#endif
