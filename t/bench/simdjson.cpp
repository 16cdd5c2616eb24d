/* simdjson FILE: every line parsed into a DOM, nothing else; prints how many.  (For t/bench/scan.sh, which
 * compiles it where the Debian package libsimdjson-dev is there.) */
#include <cstdio>
#include <cstring>
#include <simdjson.h>

static const size_t block = size_t(1) << 20;

int main(int argc, char **argv)
{
	static char bytes[2 * block + simdjson::SIMDJSON_PADDING]; // the beginning of a line, and a block
	simdjson::dom::parser parser;
	size_t count = 0, rest = 0, n;
	std::FILE *file = argc == 2 ? std::fopen(argv[1], "re") : nullptr;

	if (file == nullptr)
		return 1;
	while ((n = std::fread(bytes + rest, 1, block, file)) > 0) {
		const char *at = bytes, *end = bytes + rest + n;

		while (const char *newline = static_cast<const char *>(std::memchr(at, '\n', static_cast<size_t>(end - at)))) {
			simdjson::dom::element line;

			if (parser.parse(at, static_cast<size_t>(newline - at), false).get(line) != simdjson::SUCCESS)
				return 1;
			at = newline + 1;
			count++;
		}
		rest = static_cast<size_t>(end - at);
		std::memmove(bytes, at, rest);
	}
	std::printf("%zu\n", count);
	return rest != 0;
}
