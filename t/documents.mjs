// Random JSON texts, each with its canonical form as the engine would have it, or an error.
// usage: node documents.mjs COUNT SEED TEXTS FORMS
// TEXTS: lines {"id":N,"runId":"r","agentSeq":0,"ordinal":0,"tool":"t","args":TEXT}, some of them broken;
// FORMS: for each the canonical form of args, "number" or "request".
import { writeFileSync } from 'node:fs';

const [count, seed, texts, forms] = [Number(process.argv[2]), Number(process.argv[3]), process.argv[4], process.argv[5]];
let state = BigInt(seed) * 0x9e3779b97f4a7c15n + 1n;
const bits = () => {
  state ^= (state << 13n) & 0xffffffffffffffffn;
  state ^= state >> 7n;
  state ^= (state << 17n) & 0xffffffffffffffffn;
  return Number(state & 0xffffffffn);
};
const below = (n) => bits() % n;
const pick = (list) => list[below(list.length)];

const units = ['a', 'z', '0', '"', '\\', '/', '\n', '\t', '\b', '\f', '\r', '\u0000', '\u001f', '\u007f', 'é', '\u2028', '\ufb33',
  '\ue000', '\uffff', '😀', '\u{10ffff}', '\ud800', '\udbff', '\udc00', '\udfff', '\ud83d', '\ude00', '__proto__', 'constructor', '10', '9'];
const hex = (unit, upper) => { const h = unit.toString(16).padStart(4, '0'); return '\\u' + (upper ? h.toUpperCase() : h); };
const escapeOf = { '"': '\\"', '\\': '\\\\', '\n': '\\n', '\t': '\\t', '\b': '\\b', '\f': '\\f', '\r': '\\r' };
const string = () => {
  let out = '';
  for (let n = below(6); n > 0; n--) {
    for (const c of pick(units)) {
      const alone = c.length === 1 && c >= '\ud800' && c <= '\udfff';
      if (alone || below(8) === 0 || (c < ' ' && !escapeOf[c])) for (let i = 0; i < c.length; i++) out += hex(c.charCodeAt(i), below(2));
      else if (escapeOf[c]) out += escapeOf[c];
      else out += c === '/' && below(2) ? '\\/' : c;
    }
  }
  return `"${out}"`;
};
const digits = (n) => Array.from({ length: n }, () => below(10)).join('');
const double = new DataView(new ArrayBuffer(8));
const number = () => {
  switch (below(7)) {
    case 0: return String(below(1000));
    case 1: return `${below(2) ? '-' : ''}${1 + below(9)}${digits(below(25))}`;
    case 2: return `${below(2) ? '-' : ''}${below(10)}.${digits(1 + below(22))}`;
    case 3: return `${below(10)}${below(2) ? '.' + digits(1 + below(5)) : ''}${pick(['e', 'E'])}${pick(['', '+', '-'])}${below(below(20) ? 330 : 100000)}`;
    case 4: { double.setUint32(0, bits()); double.setUint32(4, bits()); const v = double.getFloat64(0); return Number.isFinite(v) ? String(v) : '0'; }
    case 5: return pick(['-0', '0.0', '5e-324', '2.2250738585072014e-308', '1.7976931348623157e308', '9007199254740993', '1e21', '1e-7', '0.000001', '123456789012345680000', '1E400', '-1e400', '4.35', '0.1', '100']);
    default: return String(2 ** (below(2100) - 1074));
  }
};
const space = () => pick(['', '', '', ' ', '\t', '\r', '  ']);
const value = (depth) => {
  const kind = below(depth > 5 ? 5 : 8);
  if (kind === 0) return pick(['null', 'true', 'false']);
  if (kind < 3) return number();
  if (kind < 5) return string();
  const items = Array.from({ length: below(5) }, () => (kind === 5 ? '' : space() + string() + space() + ':') + space() + value(depth + 1) + space());
  return kind === 5 ? `[${items.join(',') || space()}]` : `{${items.join(',') || space()}}`;
};
const breakOne = (text) => {
  const at = below(text.length + 1);
  switch (below(4)) {
    case 0: return text.slice(0, at) + text.slice(at + 1);
    case 1: return text.slice(0, at) + pick(['"', ',', '}', ']', '\\', '0', '\u000b', '\u00a0', '\ufeff', '-', 'e', '.', '/', "'", '\u0001']) + text.slice(at);
    case 2: return text.slice(0, at);
    default: { const c = text.slice(at, at + 1); return text.slice(0, at) + c + text.slice(at); }
  }
};

class Overflow extends Error {}
const canonical = (v) => {
  if (typeof v === 'number' && !Number.isFinite(v)) throw new Overflow();
  if (v === null || typeof v !== 'object') return JSON.stringify(v);
  if (Array.isArray(v)) return `[${v.map(canonical).join(',')}]`;
  return `{${Object.keys(v).sort().map((k) => `${JSON.stringify(k)}:${canonical(v[k])}`).join(',')}}`;
};

const lines = [];
const answers = [];
for (let id = 0; id < count; id++) {
  // through UTF-8, as the engine would get it: a half of a pair that was cut becomes U+FFFD
  const text = Buffer.from(below(4) === 0 ? breakOne(value(0)) : value(0)).toString().replace(/\n/g, ' ');
  const line = `{"id":${id},"runId":"r","agentSeq":0,"ordinal":0,"tool":"t","args":${text}}`;
  lines.push(line);
  try {
    const { args, ...rest } = JSON.parse(line);
    if (args === undefined || rest.id !== id || rest.tool !== 't' || rest.runId !== 'r') throw new SyntaxError();
    answers.push(canonical(args));
  } catch (e) {
    answers.push(e instanceof Overflow ? 'number' : 'request');
  }
}
writeFileSync(texts, lines.join('\n') + '\n');
writeFileSync(forms, answers.join('\n') + '\n');
