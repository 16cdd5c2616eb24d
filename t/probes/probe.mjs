// Denial probes from JavaScript: probe.mjs KEY=VALUE... prints `NAME allowed` or `NAME denied CODE`, as probe.c does.
import child from "node:child_process";
import dgram from "node:dgram";
import fs from "node:fs";
import net from "node:net";

const key = Object.fromEntries(process.argv.slice(2).map((word) => [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)]));
const { secret, dir, pid, port } = key;
const victim = `${dir}/victim`;
const undone = (path, make, undo = fs.unlinkSync) => { make(path); undo(path); };
const settled = (emitter, good) => new Promise((resolve, reject) => { emitter.once(good, resolve); emitter.once("error", reject); });
const connect = async (to) => { const client = net.connect(to); try { await settled(client, "connect"); } finally { client.destroy(); } };

const probes = {
	read: () => fs.readFileSync(secret),
	stat: () => fs.statSync(secret),
	lstat: () => fs.lstatSync(secret),
	access: () => fs.accessSync(secret),
	readdir: () => fs.readdirSync(dir),
	realpath: () => fs.realpathSync(secret),
	promises: () => fs.promises.readFile(secret),
	stream: () => settled(fs.createReadStream(secret), "data"),
	copy: () => undone("copy", (path) => fs.copyFileSync(secret, path)),
	chdir: () => process.chdir(dir),
	"dot-dot": () => fs.readFileSync("../".repeat(20) + secret.slice(1)),
	"self-root": () => fs.readFileSync(`/proc/self/root${secret}`),
	write: () => fs.closeSync(fs.openSync(victim, "r+")),
	append: () => fs.appendFileSync(victim, "x"),
	create: () => undone(`${dir}/js-new`, (path) => fs.writeFileSync(path, "x", { flag: "wx" })),
	mkdir: () => undone(`${dir}/js-dir`, fs.mkdirSync, fs.rmdirSync),
	symlink: () => undone(`${dir}/js-link`, (path) => fs.symlinkSync("x", path)),
	link: () => undone(`${dir}/js-hard`, (path) => fs.linkSync(victim, path)),
	chmod: () => fs.chmodSync(victim, 0o644),
	utimes: () => fs.utimesSync(victim, 1, 1),
	truncate: () => fs.truncateSync(victim, 1),
	rename: () => { fs.renameSync(victim, `${victim}2`); fs.renameSync(`${victim}2`, victim); },
	cmdline: () => fs.readFileSync(`/proc/${pid}/cmdline`),
	environ: () => fs.readFileSync(`/proc/${pid}/environ`),
	kill: () => process.kill(Number(pid), 0),
	connect: () => connect({ host: "127.0.0.1", port: Number(port) }),
	unix: () => connect({ path: key.unix }),
	abstract: () => connect({ path: `\0${key.abstract}` }),
	listen: async () => { const server = net.createServer(); server.listen(0, "127.0.0.1"); await settled(server, "listening"); server.close(); },
	udp: async () => { const socket = dgram.createSocket("udp4"); try { socket.bind(0); await settled(socket, "listening"); } finally { try { socket.close(); } catch { /* never open */ } } },
	shell: () => child.execFileSync("/bin/cat", [secret], { stdio: "pipe" }),
	hostname: () => fs.readFileSync("/etc/hostname"),
};

const here = process.cwd();
for (const [name, attempt] of Object.entries(probes)) {
	let verdict = "allowed";
	try {
		await attempt();
	} catch (error) {
		verdict = `denied ${error.code ?? error.status ?? error.message}`;
	}
	process.chdir(here);
	console.log(`js.${name} ${verdict}`);
}
