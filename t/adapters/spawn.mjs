#!/usr/bin/env node
// An adapter of rv-conformance(7) with node's child_process: a session and a deadline of its own for
// each tool, and both rows of a ledger.  What node cannot do without help it does not do, and
// rv-conformance(7) lists the checks that it fails for it.
import { spawn, spawnSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { appendFileSync, chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

class Failure extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

const canonical = (value) => {
  if (typeof value === 'number' && !Number.isFinite(value)) throw new Failure('number', 'a number overflows a double');
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  return `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`;
};

function mint(config, request) {
  if (!config.credentials) return {};
  const [command, ...words] = config.credentials;
  const done = spawnSync(command, words, { input: JSON.stringify(request) + '\n', timeout: 10000 });
  try {
    if (done.status !== 0) throw new Error('status');
    const minted = JSON.parse(done.stdout.toString());
    const good = ([name, text]) => typeof text === 'string' && !/[=\0]/.test(name) && !text.includes('\0');
    if (minted === null || Array.isArray(minted) || typeof minted !== 'object' || !Object.entries(minted).every(good)) throw new Error('shape');
    return minted;
  } catch {
    throw new Failure('config', 'no credentials');
  }
}

function environment(config, request) {
  const env = {};
  for (const name of config.allowEnv ?? []) if (name in process.env) env[name] = process.env[name];
  return { ...env, ...mint(config, request), RULVAR_TOOL: request.tool, RULVAR_RUN_ID: request.ctx.runId, RULVAR_IDEMPOTENCY_KEY: request.ctx.idempotencyKey };
}

const killGroup = (child, signal) => {
  try {
    process.kill(-child.pid, signal);
  } catch {
    // nobody left in it
  }
};

const run = (argv, options, input, config) =>
  new Promise((resolve) => {
    const child = spawn(argv[0], argv.slice(1), { ...options, detached: true, stdio: 'pipe' });
    const out = [];
    let size = 0;
    let err = Buffer.alloc(0);
    let reason = null;
    let timers = [];
    const end = (result) => {
      timers.forEach(clearTimeout);
      resolve({ reason, out: Buffer.concat(out), err, ...result });
    };
    child.on('error', (error) => end({ spawnError: error }));
    child.stdin.on('error', () => {});
    child.stdout.on('data', (chunk) => {
      size += chunk.length;
      if (size <= config.maxOutputBytes) out.push(chunk);
      else if (reason === null) {
        reason = 'output-cap';
        killGroup(child, 'SIGKILL');
      }
    });
    child.stderr.on('data', (chunk) => {
      err = Buffer.concat([err, chunk]).subarray(-4096);
    });
    child.on('exit', (code, signal) => {
      killGroup(child, 'SIGKILL');
      setTimeout(() => end({ code, signal }), 20); // what is still in the pipes
    });
    timers.push(setTimeout(() => {
      reason ??= 'timeout';
      killGroup(child, 'SIGTERM');
      timers.push(setTimeout(() => killGroup(child, 'SIGKILL'), config.killGraceMs));
    }, config.timeoutMs));
    child.stdin.end(input);
  });

const tail = (bytes) => [...bytes.toString('utf8')].slice(-500).join('').replace(/^\ufffd+/, bytes.length === 4096 ? '' : '$&');

function admit(done) {
  if (done.spawnError) throw new Failure('spawn', done.spawnError.message);
  if (done.reason) throw new Failure(done.reason, 'ended');
  if (done.code !== 0) throw new Failure('exit', `status ${done.code ?? done.signal}: ${tail(done.err)}`);
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(done.out).trim();
    return text === '' ? null : JSON.parse(text);
  } catch {
    throw new Failure('protocol', 'stdout is not one JSON value');
  }
}

async function attempt(config, request, workdir, done) {
  const spec = request.spec ?? {};
  const argv = spec.command ? [spec.command, ...(spec.args ?? [])] : [config.command, ...(config.args ?? []), ...(spec.args ?? [])];
  const input = `{"tool":${JSON.stringify(request.tool)},"args":${canonical(request.args)},"idempotencyKey":${JSON.stringify(request.ctx.idempotencyKey)}}\n`;
  const env = environment(config, request);
  try {
    Object.assign(done, await run(argv, { cwd: workdir, env }, input, config));
  } catch (error) {
    throw new Failure('spawn', error.message); // spawn itself throws for some of them
  }
  return admit(done);
}

async function dispatch(config, request) {
  if (`${request.tool}${request.ctx.runId}${request.ctx.idempotencyKey}`.includes('\0')) throw new Failure('request', 'a NUL in a name');
  const safe = request.tool.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64);
  const workdir = mkdtempSync(join(config.workdirBase ?? tmpdir(), `rulvar-exec-${safe}-`));
  chmodSync(workdir, 0o700);
  const shared = {
    idempotencyKey: request.ctx.idempotencyKey, runId: request.ctx.runId, spanId: request.ctx.spanId ?? 'none', tool: request.tool,
    argsHash: createHash('sha256').update(canonical(request.args)).digest('hex'), executor: 'subprocess', workdir, startedAt: Date.now(), attemptId: randomUUID(),
  };
  const write = (row) => {
    try {
      if (config.ledger) appendFileSync(config.ledger, JSON.stringify(row) + '\n');
    } catch (error) {
      throw new Failure('ledger', error.message);
    }
  };
  const done = {};
  let outcome = 'ok';
  try {
    write({ phase: 'intent', ...shared });
  } catch (error) {
    rmSync(workdir, { recursive: true, force: true });
    throw error;
  }
  try {
    return await attempt(config, request, workdir, done);
  } catch (error) {
    outcome = error.code === 'timeout' ? 'timeout' : 'error';
    throw error;
  } finally {
    rmSync(workdir, { recursive: true, force: true });
    write({ phase: 'outcome', ...shared, durationMs: Date.now() - shared.startedAt, outcome, exitCode: done.code ?? null, signal: done.signal ?? null });
  }
}

if (process.argv[2] === '--capabilities') {
  console.log(JSON.stringify({ name: 'spawn.mjs', capabilities: ['ledger', 'two-phase', 'credentials'] }));
} else {
  const { config, request } = JSON.parse(readFileSync(0, 'utf8'));
  const reply = { tool: request.tool, runId: request.ctx.runId, spanId: request.ctx.spanId, idempotencyKey: request.ctx.idempotencyKey };
  try {
    Object.assign(reply, { ok: true, result: await dispatch(config, request) });
  } catch (error) {
    Object.assign(reply, { ok: false, error: { code: error.code ?? 'config', message: error.message } });
  }
  process.stdout.write(JSON.stringify(reply) + '\n', () => process.exit(0));
}
