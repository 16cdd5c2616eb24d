/* The member names of a row (contract, section 3), in one place. */
#ifndef RV_LEDGER_NAMES_H
#define RV_LEDGER_NAMES_H

#define RV_NAME_PHASE        "phase"
#define RV_NAME_KEY          "idempotencyKey"
#define RV_NAME_RUN_ID       "runId"
#define RV_NAME_SPAN_ID      "spanId"
#define RV_NAME_TOOL         "tool"
#define RV_NAME_ARGS_HASH    "argsHash"
#define RV_NAME_EXECUTOR     "executor"
#define RV_NAME_WORKDIR      "workdir"
#define RV_NAME_STARTED_AT   "startedAt"
#define RV_NAME_ATTEMPT_ID   "attemptId"

#define RV_NAME_SANDBOX      "sandbox"
#define RV_NAME_CONTAINMENT  "containment"
#define RV_NAME_WRITER       "writer"
#define RV_NAME_HOST         "host"
#define RV_NAME_BOOT_ID      "bootId"
#define RV_NAME_PID          "pid"
#define RV_NAME_START_TIME   "startTime"
#define RV_NAME_LOCK         "lock"
#define RV_NAME_UNTIL        "until"

#define RV_NAME_DURATION_MS  "durationMs"
#define RV_NAME_OUTCOME      "outcome"
#define RV_NAME_EXIT_CODE    "exitCode"
#define RV_NAME_SIGNAL       "signal"

#define RV_NAME_BYTES        "bytes"
#define RV_NAME_BYTES_BASE64 "bytesBase64"
#define RV_NAME_SHA256       "sha256"
#define RV_NAME_RECOVERED_AT "recoveredAt"

#endif
