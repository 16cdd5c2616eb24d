# rv-confine: the runtimes that people have, each twice with the same identities.
load helper
load confine

setup() {
	mkdir -p prog in root
	chmod 700 root
}

# twice OPTION...: observed and attributable both times, by the same identities; the second is in ./result.
twice() {
	local one

	confine "$@" >result 2>stderr || { cat result stderr >&2; return 1; }
	holds "$GOOD" || return
	one=$(jq -c .identities result)
	confine "$@" >result 2>stderr || return
	holds "$GOOD" || return
	rv_equal "$one" "$(jq -c .identities result)" identities
}

@test "node: several files, workers, wasm, crypto, Intl, and 20 MB of input" {
	rv_need node
	head -c 20000000 /dev/zero >in/big
	file prog/lib/sum.mjs <<<'export const sum = (a, b) => a + b;'
	file prog/worker.mjs <<<'import { parentPort } from "node:worker_threads"; parentPort.postMessage("from a worker");'
	file prog/main.mjs <<'EOT'
import { readFileSync } from "node:fs";
import { createHash, randomBytes } from "node:crypto";
import { Worker } from "node:worker_threads";
import { sum } from "./lib/sum.mjs";
const wasm = new Uint8Array([0,97,115,109,1,0,0,0,1,7,1,96,2,127,127,1,127,3,2,1,0,7,7,1,3,97,100,100,0,0,10,9,1,7,0,32,0,32,1,106,11]);
const { instance } = await WebAssembly.instantiate(wasm);
const said = await new Promise((done, fail) => {
	const worker = new Worker(new URL("./worker.mjs", import.meta.url));
	worker.on("message", done); worker.on("error", fail);
});
console.log(JSON.stringify([sum(1, 2), instance.exports.add(40, 2), readFileSync("big").length, randomBytes(8).length,
	createHash("sha256").update("x").digest("hex").slice(0, 8), new Intl.NumberFormat("de-DE").format(1234.5), said,
	process.argv.slice(1)]));
EOT
	twice --runtime "$(command -v node)" --entry main.mjs -- 'an argument'
	holds 'json.loads(out) == [3, 42, 20000000, 8, "2d711642", "1.234,5", "from a worker", ["/program/main.mjs", "an argument"]]'
	for profile in linux/1+proc landlock/1; do
		confine --runtime "$(command -v node)" --entry main.mjs --profile "$profile" >result 2>stderr
		holds "$GOOD" 'json.loads(out)[1] == 42'
	done
}

@test "node: what JavaScript itself tries is refused, and its admission is written from inside the runtime" {
	rv_need node
	file prog/main.mjs <<'EOT'
import fs from "node:fs"; import net from "node:net"; import dgram from "node:dgram"; import dns from "node:dns";
import { spawnSync } from "node:child_process"; import { Session } from "node:inspector"; import inspector from "node:inspector";
const got = {};
const attempt = (name, f) => { try { f(); got[name] = "ALLOWED"; } catch (error) { got[name] = error.code ?? String(error); } };
const later = (name, start) => new Promise((done) => { const end = (v) => { got[name] ??= v; done(); };
	try { start(end); } catch (error) { end(error.code ?? String(error)); } setTimeout(() => end("nothing"), 3000).unref(); });
attempt("write", () => fs.writeFileSync("/home/x", "x"));
attempt("writeTmp", () => fs.writeFileSync("/tmp/x", "x"));
attempt("mkdir", () => fs.mkdirSync("/input/x"));
attempt("passwd", () => fs.readFileSync("/etc/passwd"));
attempt("fd3", () => fs.writeSync(3, "sf-confined/1 refused\n"));
attempt("dlopen", () => process.dlopen({ exports: {} }, "/program/main.mjs"));
attempt("kill", () => process.kill(1, 0));
attempt("inspector", () => { inspector.open(0); if (inspector.url() === undefined) throw new Error("no url"); });
const child = spawnSync("/bin/sh", ["-c", "true"]);
got.spawn = child.error?.code ?? "ALLOWED";
await later("connect", (end) => net.connect(80, "127.0.0.1").on("error", (e) => end(e.code)).on("connect", () => end("ALLOWED")));
await later("listen", (end) => net.createServer().on("error", (e) => end(e.code)).listen(0, () => end("ALLOWED")));
await later("udp", (end) => { const s = dgram.createSocket("udp4"); s.on("error", (e) => end(e.code)); s.send("x", 9, "127.0.0.1", (e) => end(e ? e.code : "ALLOWED")); });
await later("dns", (end) => dns.lookup("example.com", (e) => end(e ? e.code : "ALLOWED")));
console.log(JSON.stringify(got));
process.exit(0);
EOT
	status=0
	confine --runtime "$(command -v node)" --entry main.mjs --timeout 30s >result 2>stderr || status=$?
	holds "$GOOD" 'len(json.loads(out)) == 13' '[k for k, v in json.loads(out).items() if v == "ALLOWED"] == []'
	file prog/bad.mjs <<<'import "./nowhere.mjs"'
	confine --runtime "$(command -v node)" --entry bad.mjs >result 2>stderr
	holds "$GOOD" 'p["exit"]["code"] == 1'
}

@test "python on its tree: json, hashlib, sqlite3 in memory" {
	python=$(/usr/bin/python3 -c 'import sys; print("/usr/lib/python%d.%d" % sys.version_info[:2])')
	file prog/main.py <<'EOT'
import hashlib, json, sqlite3, sys
db = sqlite3.connect(":memory:")
db.execute("create table t(x)")
db.execute("insert into t values (41)")
print(json.dumps([db.execute("select x + 1 from t").fetchone()[0], hashlib.sha256(b"x").hexdigest()[:8], sys.flags.isolated, sys.argv]))
try:
    sqlite3.connect("/tmp/x.db").execute("create table t(x)")
    print("ALLOWED")
except sqlite3.OperationalError:
    print("refused")
EOT
	twice --runtime /usr/bin/python3 --runtime-tree "$python" --entry main.py -- a
	holds 'out == b"""[42, "2d711642", 1, ["/program/main.py", "a"]]\nrefused\n"""'
}

# A program of two threads and a clock, in C.
c_program() {
	echo >prog/entry
	cat >main.c <<'EOT'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static void *work(void *data) { *(int *)data = 42; return NULL; }
int main(void) {
	pthread_t thread; int got = 0; struct timespec t = { 0, 1000000 };
	if (pthread_create(&thread, NULL, work, &got) != 0 || pthread_join(thread, NULL) != 0) return 1;
	nanosleep(&t, NULL);
	printf("%d\n", got);
	return 0;
}
EOT
}

@test "static programs in C with threads and a clock: glibc" {
	rv_need gcc
	c_program
	gcc -O1 -static -o c-glibc main.c -lpthread
	twice --runtime "$PWD/c-glibc" --entry entry
	holds 'out == b"42\n"'
}

@test "static programs in C with threads and a clock: musl" {
	rv_need musl-gcc
	c_program
	musl-gcc -O1 -static -o c-musl main.c
	twice --runtime "$PWD/c-musl" --entry entry
	holds 'out == b"42\n"'
}

@test "static programs in Go" {
	rv_need go
	echo >prog/entry
	printf '%s\n' 'package main' 'import "fmt"' 'func main() { c := make(chan int); go func() { c <- 42 }(); fmt.Println(<-c) }' >main.go
	CGO_ENABLED=0 HOME=$PWD GOCACHE=${RV_GOCACHE:-$PWD/cache} GOFLAGS=-p=2 go build -o go-static main.go
	twice --runtime "$PWD/go-static" --entry entry
	holds 'out == b"42\n"'
}

@test "static programs in Rust" {
	rv_need rustc
	echo >prog/entry
	echo 'fn main() { let t = std::thread::spawn(|| 42); println!("{}", t.join().unwrap()); }' >main.rs
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL rustc -C target-feature=+crt-static -o rust-static main.rs
	twice --runtime "$PWD/rust-static" --entry entry
	holds 'out == b"42\n"'
}

@test "a program's own ends: abort, a fault, a signal it raises, the CPU limit" {
	rv_need gcc
	echo >prog/entry
	printf '%s\n' '#include <signal.h>' '#include <stdlib.h>' '#include <string.h>' 'int main(int c, char **v) { char w = v[2][0]; (void)c;' \
		'if (w == 97) abort(); if (w == 102) *(volatile int *)0 = 1; if (w == 116) raise(SIGTERM); for (;;); }' | gcc -x c -static -o ends -
	for pair in abort:SIGABRT fault:SIGSEGV term:SIGTERM; do
		confine --runtime "$PWD/ends" --entry entry -- "${pair%:*}" >result 2>stderr
		holds "$GOOD" "p[\"exit\"] == {\"code\": None, \"signal\": \"${pair#*:}\"}"
	done
	confine --runtime "$PWD/ends" --entry entry --cpu-seconds 1 -- spin >result 2>stderr
	holds "$GOOD" 'p["exit"]["signal"] == "SIGKILL" and p["stopped"] is None and not p["killSent"]'
}
