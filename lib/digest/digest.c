/* SHA256_Init and its like, and not EVP: setting libcrypto's providers up costs 4.3 million instructions
 * at every start, thirty times all the rest of a program here, reads a configuration file that the
 * environment names, and gives the same code in the end.  They are deprecated and not going away; should
 * they, this is the only file. */
#define OPENSSL_API_COMPAT 0x10100000L

#include "lib/digest/digest.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <openssl/evp.h>
#include <openssl/sha.h>

struct rv_sha256 {
	SHA256_CTX context;
};

struct rv_sha256 *rv_sha256_new(struct rv_error *err)
{
	struct rv_sha256 *sha = calloc(1, sizeof *sha);

	if (sha == NULL)
		(void)rv_error_nomem(err);
	return sha;
}

void rv_sha256_free(struct rv_sha256 *sha)
{
	free(sha);
}

static int failed(struct rv_error *err)
{
	return rv_error_set(err, RV_E_IO, 0, "SHA-256 failed in libcrypto");
}

int rv_sha256_begin(struct rv_sha256 *sha, struct rv_error *err)
{
	return SHA256_Init(&sha->context) == 1 ? 0 : failed(err);
}

int rv_sha256_update(struct rv_sha256 *sha, const void *bytes, size_t len, struct rv_error *err)
{
	return SHA256_Update(&sha->context, bytes, len) == 1 ? 0 : failed(err);
}

int rv_sha256_end(struct rv_sha256 *sha, unsigned char digest[RV_SHA256_SIZE], struct rv_error *err)
{
	return SHA256_Final(digest, &sha->context) == 1 ? 0 : failed(err);
}

int rv_sha256_hex(struct rv_sha256 *sha, const void *bytes, size_t len, char hex[RV_SHA256_HEX], struct rv_error *err)
{
	unsigned char digest[RV_SHA256_SIZE];

	if (rv_sha256_begin(sha, err) != 0 || rv_sha256_update(sha, bytes, len, err) != 0 ||
	    rv_sha256_end(sha, digest, err) != 0)
		return -1;
	rv_hex(digest, sizeof digest, hex);
	return 0;
}

void rv_hex(const unsigned char *bytes, size_t len, char *text)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	text[2 * len] = '\0';
}

void rv_base64_add(struct rv_buffer *out, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	while (len > 0) { /* EVP_EncodeBlock counts in int: a multiple of 3 at a time, so no padding inside */
		int n = len > 3 << 20 ? 3 << 20 : (int)len;
		char *room = rv_buffer_reserve(out, ((size_t)n + 2) / 3 * 4 + 1);

		if (room == NULL)
			return;
		rv_buffer_commit(out, (size_t)EVP_EncodeBlock((unsigned char *)room, at, n));
		at += n;
		len -= (size_t)n;
	}
}

static int base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* EVP_DecodeBlock skips white space and does not check stray bits, so it cannot be strict. */
int rv_base64_decode(struct rv_buffer *out, const char *text, size_t len, struct rv_error *err)
{
	size_t pad = len >= 1 && text[len - 1] == '=' ? (len >= 2 && text[len - 2] == '=' ? 2 : 1) : 0;
	uint32_t bits = 0;
	unsigned held = 0;

	if (len % 4 != 0)
		return rv_error_set(err, RV_E_REQUEST, 0, "base64: the length is no multiple of 4");
	for (size_t i = 0; i < len - pad; i++) {
		int value = base64_value(text[i]);

		if (value < 0)
			return rv_error_set(err, RV_E_REQUEST, 0, "base64: a character outside the alphabet");
		bits = (bits << 6 | (uint32_t)value) & 0xFFFFFF;
		held += 6;
		if (held >= 8) {
			held -= 8;
			rv_buffer_add_byte(out, (char)(bits >> held & 0xFF));
		}
	}
	if (held > 0 && (bits & ((1U << held) - 1)) != 0)
		return rv_error_set(err, RV_E_REQUEST, 0, "base64: stray bits behind the last byte");
	return rv_buffer_check(out, err);
}

int rv_random(void *bytes, size_t len, struct rv_error *err)
{
	char *at = bytes;

	while (len > 0) {
		ssize_t n = getrandom(at, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return rv_error_set(err, RV_E_IO, errno, "getrandom");
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int rv_uuid(char text[RV_UUID_TEXT], struct rv_error *err)
{
	unsigned char raw[16];
	char hex[33];
	char *to = text;

	if (rv_random(raw, sizeof raw, err) != 0)
		return -1;
	raw[6] = (unsigned char)((raw[6] & 0x0F) | 0x40);
	raw[8] = (unsigned char)((raw[8] & 0x3F) | 0x80);
	rv_hex(raw, sizeof raw, hex);
	for (int i = 0; i < 32; i++) {
		if (i == 8 || i == 12 || i == 16 || i == 20)
			*to++ = '-';
		*to++ = hex[i];
	}
	*to = '\0';
	return 0;
}
