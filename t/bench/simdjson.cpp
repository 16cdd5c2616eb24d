/* simdjson FILE: every line parsed into a DOM, and of it taken what pairing needs; there is no pairing.  Prints
 * how many lines, intents and bytes of identities there were.  (For t/bench/scan.sh, which compiles it where the
 * Debian package libsimdjson-dev is there.) */
#include <cstdio>
#include <cstring>
#include <simdjson.h>
#include <string_view>

static const size_t block = size_t(1) << 20;

/* False where it is no row that can be paired. */
static bool take(const simdjson::dom::element &line, size_t *intents, size_t *identities)
{
	std::string_view phase, id, key, outcome;
	double started_at;

	if (line["phase"].get(phase) != simdjson::SUCCESS)
		return false;
	*intents += phase == "intent";
	if (phase == "outcome" && line["outcome"].get(outcome) != simdjson::SUCCESS)
		return false;
	if (line["attemptId"].get(id) == simdjson::SUCCESS) {
		*identities += id.size();
		return true;
	}
	if (line["idempotencyKey"].get(key) != simdjson::SUCCESS || line["startedAt"].get(started_at) != simdjson::SUCCESS)
		return false;
	*identities += key.size() + sizeof started_at;
	return true;
}

int main(int argc, char **argv)
{
	static char bytes[2 * block + simdjson::SIMDJSON_PADDING]; // the beginning of a line, and a block
	simdjson::dom::parser parser;
	size_t count = 0, intents = 0, identities = 0, rest = 0, n;
	std::FILE *file = argc == 2 ? std::fopen(argv[1], "re") : nullptr;

	if (file == nullptr)
		return 1;
	while ((n = std::fread(bytes + rest, 1, block, file)) > 0) {
		const char *at = bytes, *end = bytes + rest + n;

		while (const char *newline = static_cast<const char *>(std::memchr(at, '\n', static_cast<size_t>(end - at)))) {
			simdjson::dom::element line;

			if (parser.parse(at, static_cast<size_t>(newline - at), false).get(line) != simdjson::SUCCESS ||
			    !take(line, &intents, &identities))
				return 1;
			at = newline + 1;
			count++;
		}
		rest = static_cast<size_t>(end - at);
		std::memmove(bytes, at, rest);
	}
	std::printf("%zu %zu %zu\n", count, intents, identities);
	return rest != 0;
}
