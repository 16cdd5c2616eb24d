/* What a run came to: one of the seed's three, or a request that was none (seed, "Types"). */
#ifndef RV_CONFINE_RESULT_H
#define RV_CONFINE_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/confine/collect.h"
#include "lib/confine/profile.h"
#include "lib/confine/request.h"

enum rv_confine_status {
	RV_CONFINE_INVALID,     /* nothing was touched: `message` */
	RV_CONFINE_FAILED,      /* this program could not do its work, and nothing ran: `error` */
	RV_CONFINE_NOT_STARTED, /* no process exists: `reason`, `message` */
	RV_CONFINE_OBSERVED,    /* reaped, and its pipes closed */
	RV_CONFINE_UNRESOLVED   /* not known: treat everything as live */
};

enum rv_not_started {
	RV_REASON_ABORTED,
	RV_REASON_HOST,
	RV_REASON_RUNTIME,
	RV_REASON_PROFILE,
	RV_REASON_SNAPSHOT,
	RV_REASON_RETAINED,
	RV_REASON_SETUP
};

enum rv_ns_state { RV_NS_NONE, RV_NS_REMOVED, RV_NS_QUARANTINED };

struct rv_disposition {
	enum rv_ns_state state;
	bool durable;        /* removed */
	char path[PATH_MAX]; /* quarantined */
	struct rv_buffer reason;
};

struct rv_confine_result {
	enum rv_confine_status status;
	enum rv_not_started reason;
	struct rv_error error;      /* its message is the result's */
	struct rv_disposition ns;
	struct rv_buffer problems;  /* elements of a JSON array */
	size_t problem_count;
	struct rv_facts facts;
	/* identities */
	char runtime[RV_DIGEST_TEXT];
	char profile[RV_DIGEST_TEXT];
	char instantiated[RV_DIGEST_TEXT];
	int landlock_abi;
	bool by_digest;             /* the runtime was hashed again after the run, and not only looked at */
	bool proven;
};

void rv_confine_result_init(struct rv_confine_result *result);
void rv_confine_result_release(struct rv_confine_result *result);

/* There is no request, and why: invalid, cancelled while it was read, or failed. */
void rv_confine_result_refuse(struct rv_confine_result *result, const struct rv_error *err);

/* One more reason why nothing can be credited to the pins. */
void rv_confine_problem(struct rv_confine_result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The line of a result, with its newline.  `line` > 0: an answer to that line of a stream. */
int rv_confine_result_add_json(struct rv_buffer *out, const struct rv_confine_result *result,
			       const struct rv_confine_request *request, uint64_t line, struct rv_error *err);

/* Observed, and nothing speaks against it. */
bool rv_confine_is_attributable(const struct rv_confine_result *result);
/* 0 attributable, 1 observed, 2 invalid, 3 not started, 4 unresolved, 5 failed: the worst of a stream is the largest. */
int rv_confine_exit(const struct rv_confine_result *result);

#endif
