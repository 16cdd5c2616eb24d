/* executor: hostile tools in a stream; what they leave running, what they do to their pipes and their workdir. */
#include "lib/conform/hostile.h"
#include "lib/conform/suites.h"

#define LEFT(name, title, ...) \
	RV_HOSTILE(name, title, "What a tool left running is killed and reaped with it, and nothing of it is there for the next one.", \
		   "Its effects would come after its outcome row, beside a tool that knows nothing of it.", \
		   "rv-exec(1), The end", RV_CAN_CONTAIN, __VA_ARGS__)

/* The result comes when the child is at work. */
#define UNTIL_UP "while [ ! -e \"$1/up\" ]; do sleep 0.01; done; echo 1"

#define PIPES(name, title, ...) \
	RV_HOSTILE(name, title, "Whatever a tool does with its pipes, its result is all that it wrote until its end.", \
		   "A supervisor that reads, writes or waits in a fixed order can be made to wait for ever.", \
		   "rv-exec(1), The end", 0, __VA_ARGS__)

#define WORKDIR(name, title, ...) \
	RV_HOSTILE(name, title, "What a tool made of its workdir is removed behind it, and nothing outside is touched.", \
		   "What one tool leaves is what another one finds, and what a link names is not the tool's.", \
		   "rv-exec(1), The tool", 0, __VA_ARGS__)

#define GIVEN(name, title, ...) \
	RV_HOSTILE(name, title, "A tool has what it was given, and changes nothing of what the next one is given.", \
		   "A slot that serves many calls carries from one to the next what is not set anew.", \
		   "rv-exec(1), The tool", 0, __VA_ARGS__)

#define APART(name, title, ...) \
	RV_HOSTILE(name, title, "A tool that signals, traces or outruns whatever it can reaches its own tree alone.", \
		   "Who can end the supervisor ends the calls beside it, and outlives its own.", \
		   "rv-exec(1), The end", RV_CAN_CONTAIN, .apart = true, __VA_ARGS__)

const struct rv_check rv_checks_hostile[] = {
	{ "hostile.containment", "the replies of a stream say what holds its tools",
	  "Where the host has PID namespaces the tools are in one, and where it has none the replies say \"subreaper\".",
	  "What cannot be held to everything must say so.",
	  "rv-exec(1), The end", RV_CAN_STREAM | RV_CAN_CONTAIN, rv_hostile_containment, NULL },
	{ "hostile.together", "all hostile tools behind and beside one another",
	  "Slots that have served every other hostile tool serve the next one, and an ordinary one behind them all.",
	  "What one alone does no harm with may add up.",
	  "rv-exec(1), Streams", RV_CAN_STREAM, rv_hostile_run_all, NULL },

	LEFT("background", "a child in the background",
		.script = "sleep 99.$2 & echo 1"),
	LEFT("setsid", "a child in a session of its own",
		.script = "setsid sleep 99.$2 & sleep 0.1; echo 1"),
	LEFT("daemon", "two daemons, forked twice",
		.script = "(setsid sh -c '(sleep 99.$1 &) ; (sleep 98.$1 &)' sh \"$2\" &) ; sleep 0.1; echo 1"),
	LEFT("stopped", "a child that has stopped itself",
		.script = "sh -c ': >\"$2/up\"; kill -STOP $$; sleep 99.$1' sh \"$2\" \"$1\" & " UNTIL_UP),
	LEFT("deaf", "a child that ignores what can be ignored",
		.script = "sh -c 'trap \"\" TERM HUP INT QUIT; : >\"$2/up\"; sleep 99.$1; sleep 98.$1' sh \"$2\" \"$1\" & " UNTIL_UP),
	LEFT("nohup-storm", "twenty-five children of nohup(1)",
		.script = "n=0; while [ $n -lt 25 ]; do nohup sleep 99.$2 >/dev/null 2>&1 & n=$((n+1)); done; echo 1"),
	LEFT("pipeline", "a pipeline in the background",
		.script = "sleep 99.$2 | cat >/dev/null & echo 1"),
	LEFT("busy-child", "a child that never waits",
		.script = "sh -c ': >\"$2/up\"; while :; do :; done' sh \"$2\" \"$1\" & " UNTIL_UP),
	LEFT("priority", "a child of the lowest priority",
		.script = "nice -n 19 sleep 99.$2 & echo 1"),
	LEFT("forks-at-term", "children of a tool that answers SIGTERM with them",
		.code = "timeout", .short_timeout = true, .script = "trap 'setsid sleep 99.$2 & sleep 99.$2' TERM; while :; do sleep 0.1; done"),
	LEFT("holds-stdout", "a child that writes on after the result",
		.script = "(trap '' TERM PIPE; while :; do sleep 0.05; echo ' '; done) & echo 1"),
	LEFT("holds-stdin", "a child that keeps standard input",
		.script = "sleep 99.$2 <&0 & exec <&-; echo 1"),
	LEFT("clone-quiet", "a child whose end signals nobody",
		.trick = "clone-quiet"),
	LEFT("clone-sibling", "a child that is its parent's sibling",
		.trick = "clone-sibling"),
	LEFT("sibling-lies", "twenty siblings that end with a status of their own",
		.trick = "sibling-lies"),
	LEFT("new-namespaces", "a child in namespaces below its own",
		.trick = "new-namespaces"),
	LEFT("subreaper", "daemons of a tool that adopts them",
		.trick = "subreaper"),
	LEFT("pdeathsig", "a child, and a parent's death that would stop the tool",
		.trick = "pdeathsig"),
	LEFT("traced-child", "a child that the tool traces",
		.trick = "traced-child"),
	LEFT("zombies", "a hundred and fifty zombies",
		.trick = "zombies"),
	LEFT("timers", "fifty timers, and a child",
		.trick = "timers"),
	LEFT("descriptors", "a child that holds every descriptor it can",
		.trick = "descriptors"),
	LEFT("socket-holds", "its standard output in a message that nobody receives",
		.trick = "socket-holds"),

	PIPES("closes-stdin", "a tool that closes its standard input",
		.script = "exec <&-; sleep 0.1; echo 1"),
	PIPES("never-reads", "a tool that never reads",
		.script = "echo 1"),
	PIPES("closes-stdout-late", "a tool that closes its output before its end",
		.script = "echo 1; exec >&- 2>&-; sleep 0.1"),
	PIPES("byte-by-byte", "a result in single bytes",
		.script = "for i in 1 2 3 4 5 6 7 8 9 0; do printf $i; done; sleep 0.05; printf 1", .result = "12345678901"),
	PIPES("stderr-flood", "three megabytes of standard error",
		.script = "head -c 3000000 /dev/zero >&2; echo 1"),
	PIPES("stderr-only", "words on standard error and none on standard output",
		.script = "head -c 100000 /dev/zero | tr '\\0' x >&2", .result = "null"),
	PIPES("writes-before-reading", "a megabyte written before the input is read",
		.script = "head -c 1000000 /dev/zero | tr '\\0' ' '; cat >/dev/null; echo 1"),
	PIPES("exactly-the-cap", "output of exactly the cap",
		.script = "head -c 1048575 /dev/zero | tr '\\0' ' '; printf 1"),
	PIPES("nonblocking", "pipes that the tool made non-blocking",
		.trick = "nonblocking"),
	PIPES("shrinks-pipe", "an output pipe that the tool made small",
		.trick = "shrinks-pipe"),

	WORKDIR("deep-tree", "a tree of a thousand levels",
		.trick = "deep-tree"),
	WORKDIR("mode-0", "directories without permissions",
		.script = "inside \"$1\"; mkdir -p a/b/c; : >a/b/f; chmod 0 a/b/c a/b a .; echo 1"),
	WORKDIR("links-out", "links to what lies outside",
		.script = "inside \"$1\"; ln -s \"$1\"/victim l; ln -s / r; ln \"$1\"/victim/file h; mkdir d; ln -s \"$1\"/victim d/l; echo 1"),
	WORKDIR("links-loop", "links in circles",
		.script = "inside \"$1\"; ln -s . a; ln -s a b; ln -s b/b/b/b c; ln -s d d; echo 1"),
	WORKDIR("many-files", "eight hundred files",
		.script = "inside \"$1\"; n=0; while [ $n -lt 800 ]; do : >f$n; n=$((n+1)); done; echo 1"),
	WORKDIR("odd-names", "names that are options, patterns or blanks",
		.script = "inside \"$1\"; mkdir -- -rf '*' '~' \"$(printf 'a\\nb')\" .rv-0 .rv-1; : >.rv-0/.rv-1; mkdir .rv-1/.rv-0; : >' '; echo 1"),
	WORKDIR("special-files", "fifos, one of them held open",
		.script = "inside \"$1\"; mkfifo p; mkdir d; mkfifo d/p; (exec 3<>p; sleep 99.$2) & echo 1"),
	WORKDIR("renames-cwd", "a workdir that was moved, and another in its place",
		.script = "inside \"$1\"; d=$PWD; mv \"$d\" \"$d.gone\" 2>/dev/null; mkdir \"$d\" 2>/dev/null; : >\"$d/f\"; rm -r \"$d.gone\"; echo 1"),
	WORKDIR("deletes-cwd", "a workdir that the tool removed",
		.script = "inside \"$1\"; rmdir \"$PWD\"; echo 1"),
	WORKDIR("swaps-cwd", "a link in the workdir's place",
		.script = "inside \"$1\"; d=$PWD; rmdir \"$d\"; ln -s \"$1\"/victim \"$d\"; echo 1"),
	WORKDIR("cwd-is-a-file", "a file in the workdir's place",
		.script = "inside \"$1\"; d=$PWD; rmdir \"$d\"; : >\"$d\"; echo 1"),
	WORKDIR("fills-again", "a child that makes files while they are removed",
		.script = "inside \"$1\"; (while :; do mkdir -p x/y 2>/dev/null; : >x/y/z; done) 2>/dev/null & sleep 0.1; echo 1"),
	WORKDIR("mounts", "a file system mounted in the workdir, where that may be",
		.trick = "mounts"),
	WORKDIR("umask", "files and directories of no mode at all",
		.script = "inside \"$1\"; umask 777; : >f; umask 0; mkdir -m 0 g; echo 1"),

	GIVEN("environment", "an environment of no more than was granted",
		.script = "n=$(env | wc -l); [ \"$n\" -le 6 ] && echo 1"),
	GIVEN("terminal", "a tool that looks for a terminal to type on",
		.trick = "terminal"),

	APART("trace-guard", "a tool that traces its parent",
		.trick = "trace-guard", .any_end = true),
	APART("kill-all", "SIGKILL to everybody, and more to pid 1",
		.trick = "kill-all"),
	APART("kill-fast", "a child that kills everybody again and again",
		.trick = "kill-fast", .any_end = true),
	APART("storm", "a storm of forks",
		.trick = "storm"),
	APART("fork-chain", "five thousand processes, each the parent of the next",
		.trick = "fork-chain"),
	APART("kill-shell", "kill -9 -1 from a shell",
		.script = "contained \"$3\"; sleep 99.$2 & kill -9 -1; echo 1"),
	APART("stops-the-guard", "SIGSTOP, SIGTERM and SIGKILL to pid 1",
		.script = "contained \"$3\"; kill -STOP 1; kill -TERM 1; kill -KILL 1; echo 1"),
	{ .id = NULL },
};
