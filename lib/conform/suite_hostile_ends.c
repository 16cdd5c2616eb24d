/* executor: hostile tools in a stream; how they end, what they say, what cannot be started, and time. */
#include "lib/conform/hostile.h"
#include "lib/conform/suites.h"

#define ENDS(name, title, ...) \
	RV_HOSTILE(name, title, "How a tool ended is what the kernel says, and no number of its own choosing means anything else.", \
		   "A status that is read as the executor's own would make a failure a timeout, and a retry of it safe.", \
		   "rv-exec(1), The end", 0, __VA_ARGS__)

#define WORDS(name, title, ...) \
	RV_HOSTILE(name, title, "Output that is not one JSON value within the cap is refused, and the stream goes on.", \
		   "A reply made of bytes that were never checked breaks whoever reads it next.", \
		   "rv-exec(1), The end", 0, __VA_ARGS__)

#define START(name, title, ...) \
	RV_HOSTILE(name, title, "What cannot be started is answered as such, and its slot serves the next call.", \
		   "A failure between fork and exec is easily taken for the tool's own status.", \
		   "rv-exec(1), EXIT STATUS", 0, __VA_ARGS__)

#define TIME(name, title, ...) \
	RV_HOSTILE(name, title, "A tool is ended at its deadline whatever it does, and the calls beside it go on.", \
		   "One tool that stays holds a slot, and a few of them hold all.", \
		   "rv-exec(1), The end", 0, .code = "timeout", .short_timeout = true, __VA_ARGS__)

const struct rv_check rv_checks_hostile_ends[] = {
	ENDS("exit-1", "exit status 1, the number of plain failure",
		.script = "exit 1", .code = "exit"),
	ENDS("exit-2", "exit status 2, the number of wrong usage",
		.script = "exit 2", .code = "exit"),
	ENDS("exit-99", "exit status 99",
		.script = "exit 99", .code = "exit"),
	ENDS("exit-120", "exit status 120, the number of a broken protocol",
		.script = "exit 120", .code = "exit"),
	ENDS("exit-124", "exit status 124, the number of a timeout",
		.script = "exit 124", .code = "exit"),
	ENDS("exit-125", "exit status 125, the number of a wrong configuration",
		.script = "exit 125", .code = "exit"),
	ENDS("exit-126", "exit status 126, the number of what cannot be run",
		.script = "exit 126", .code = "exit"),
	ENDS("exit-127", "exit status 127, the number of what is not found",
		.script = "exit 127", .code = "exit"),
	ENDS("exit-137", "exit status 137, the number of a kill",
		.script = "exit 137", .code = "exit"),
	ENDS("exit-143", "exit status 143, the number of a termination",
		.script = "exit 143", .code = "exit"),
	ENDS("exit-255", "exit status 255",
		.script = "exit 255", .code = "exit"),
	ENDS("kills-itself", "a tool that kills itself",
		.script = "kill -9 $$", .code = "exit"),
	ENDS("terminates-itself", "a tool that terminates itself",
		.script = "kill -TERM $$", .code = "exit"),
	ENDS("aborts", "a tool that aborts",
		.script = "ulimit -c 0; kill -ABRT $$", .code = "exit"),
	ENDS("memory", "a tool that runs out of memory",
		.code = "exit", .trick = "memory"),

	WORDS("two-values", "two values",
		.script = "echo 1 2", .code = "protocol"),
	WORDS("trailing-comma", "a comma too many",
		.script = "echo '[1,]'", .code = "protocol"),
	WORDS("not-utf-8", "a byte that is no UTF-8",
		.script = "printf '\"\\377\"'", .code = "protocol"),
	WORDS("overlong", "an overlong NUL",
		.script = "printf '\"\\300\\200\"'", .code = "protocol"),
	WORDS("surrogate-bytes", "a surrogate in three bytes",
		.script = "printf '\"\\355\\240\\200\"'", .code = "protocol"),
	WORDS("nul", "a NUL behind the value",
		.script = "printf '1\\0'", .code = "protocol"),
	WORDS("half-a-value", "half a value",
		.script = "printf '{\"a\":'", .code = "protocol"),
	WORDS("nan", "a number that JSON does not have",
		.script = "echo NaN", .code = "protocol"),
	WORDS("control-bytes", "control bytes in a string",
		.script = "printf '\"\\033[2J\\001\"'", .code = "protocol"),
	WORDS("html", "a page of HTML",
		.script = "echo '<html>'", .code = "protocol"),
	WORDS("nested", "two hundred thousand brackets",
		.script = "head -c 200000 /dev/zero | tr '\\0' '['", .code = "protocol"),
	WORDS("cap-and-one", "one byte more than the cap",
		.script = "head -c 1048577 /dev/zero | tr '\\0' ' '", .code = "output-cap"),
	WORDS("flood", "output without end",
		.script = "exec yes", .code = "output-cap"),
	WORDS("flood-of-children", "output without end, of three children",
		.script = "yes & yes & yes & wait", .code = "output-cap"),

	START("no-such", "a program that is not there",
		.code = "spawn", .program = "/no/such/program"),
	START("a-directory", "a directory as the program",
		.code = "spawn", .program = "/"),
	START("no-interpreter", "a script whose interpreter is not there",
		.code = "spawn", .placed = "#!/no/such/interpreter\n", .mode = 0755),
	START("no-magic", "a text that is no program",
		.code = "spawn", .placed = "echo 1\n", .mode = 0755),
	START("not-executable", "a script without the permission",
		.code = "spawn", .placed = "#!/bin/sh\n", .mode = 0644),
	START("too-long", "an argument longer than a command line takes",
		.code = "spawn", .program = "/bin/true", .word = 131073),

	TIME("sleeps", "a tool that sleeps",
		.script = "sleep 99.$2"),
	TIME("ignores-term", "a tool that ignores SIGTERM",
		.script = "trap '' TERM; sleep 99.$2; sleep 98.$2; sleep 97.$2"),
	TIME("stops-itself", "a tool that stops itself",
		.script = "kill -STOP $$; echo 1"),
	TIME("whole-pipe", "a tool that is busy elsewhere",
		.script = "yes \"$2\" >/dev/null"),
	TIME("closed-and-quiet", "a tool that closed all its pipes",
		.script = "exec <&- >&- 2>&-; sleep 99.$2"),
	TIME("traffic", "standard error in single bytes, without pause",
		.script = "while :; do printf ' ' >&2; done"),
	TIME("one-byte-at-a-time", "a byte of output now and then",
		.script = "while sleep 0.02; do printf ' '; done"),
	TIME("answers-and-stays", "a tool that answers and stays",
		.script = "echo 1; sleep 99.$2"),
	TIME("answers-term", "a tool that answers SIGTERM with a result",
		.script = "trap 'echo 1; exit 0' TERM; while :; do sleep 0.1; done"),
	TIME("opens-a-fifo", "a tool that waits for a writer",
		.script = "inside \"$1\"; mkfifo p; read x <p"),
	TIME("reads-itself", "a tool that reads its own output",
		.script = "exec 0<>/proc/self/fd/1; cat"),
	TIME("vfork-parent", "a tool whose vfork(2) never returns",
		.trick = "vfork-parent"),
	TIME("trace-me", "a tool that is traced and stopped",
		.trick = "trace-me"),
	{ .id = NULL },
};
