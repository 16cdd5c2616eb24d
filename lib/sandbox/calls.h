/* The two seccomp tables (lib/sandbox/filter.h); tests take an entry and break it. */
#ifndef RV_SANDBOX_CALLS_H
#define RV_SANDBOX_CALLS_H

#include "lib/sandbox/filter.h"

extern const struct rv_filter rv_filter_confine; /* an allow list */
extern const struct rv_filter rv_filter_kernel;  /* a deny list: what a tool never needs, and no network */
extern const struct rv_filter rv_filter_kernel_net;

#endif
