/* The names of members, as they stand in requests, rows and replies. */
#ifndef RV_JSON_NAMES_H
#define RV_JSON_NAMES_H

#define RV_NAME_AGENT_SEQ "agentSeq"
#define RV_NAME_ARGS "args"
#define RV_NAME_ARGS_HASH "argsHash"
#define RV_NAME_CODE "code"
#define RV_NAME_DERIVATION "derivation"
#define RV_NAME_ERROR "error"
#define RV_NAME_EXEC_KEY_DERIVATION "execKeyDerivation"
#define RV_NAME_GENESIS "genesis"
#define RV_NAME_ID "id"
#define RV_NAME_IDEMPOTENCY_KEY "idempotencyKey"
#define RV_NAME_LINE "line"
#define RV_NAME_MESSAGE "message"
#define RV_NAME_OK "ok"
#define RV_NAME_ORDINAL "ordinal"
#define RV_NAME_RUN_ID "runId"
#define RV_NAME_TOOL "tool"

#endif
