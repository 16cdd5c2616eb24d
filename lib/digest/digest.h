/*
 * SHA-256 (FIPS 180-4), base64 (RFC 4648, section 4) and random identifiers (RFC 9562,
 * version 4).  This room is the only one that knows libcrypto.
 */
#ifndef RV_DIGEST_DIGEST_H
#define RV_DIGEST_DIGEST_H

#include <stddef.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"

#define RV_SHA256_SIZE 32
#define RV_SHA256_HEX 65 /* 64 lowercase digits and a NUL */
#define RV_UUID_TEXT 37  /* 36 characters and a NUL */

/* A reusable hasher; one for each thread. */
struct rv_sha256;

struct rv_sha256 *rv_sha256_new(struct rv_error *err);
void rv_sha256_free(struct rv_sha256 *sha); /* NULL is fine */
int rv_sha256_begin(struct rv_sha256 *sha, struct rv_error *err);
int rv_sha256_update(struct rv_sha256 *sha, const void *bytes, size_t len, struct rv_error *err);
int rv_sha256_end(struct rv_sha256 *sha, unsigned char digest[RV_SHA256_SIZE], struct rv_error *err);

/* One whole message, as lowercase hex. */
int rv_sha256_hex(struct rv_sha256 *sha, const void *bytes, size_t len, char hex[RV_SHA256_HEX], struct rv_error *err);
void rv_hex(const unsigned char *bytes, size_t len, char *text); /* 2*len digits and a NUL */

void rv_base64_add(struct rv_buffer *out, const void *bytes, size_t len);
/* Strict: alphabet, padding, no stray bits.  RV_E_REQUEST. */
int rv_base64_decode(struct rv_buffer *out, const char *text, size_t len, struct rv_error *err);

/* getrandom(2). */
int rv_random(void *bytes, size_t len, struct rv_error *err);
int rv_uuid(char text[RV_UUID_TEXT], struct rv_error *err);

#endif
