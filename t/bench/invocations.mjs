// Invocation lines as an agent's tools produce them, about 300 bytes each, the same every time.
// usage: node invocations.mjs [COUNT] > invocations.jsonl
const count = Number(process.argv[2] ?? 200000);
let state = 0x2545f491n;
const random = () => {
  state ^= (state << 13n) & 0xffffffffffffffffn;
  state ^= state >> 7n;
  state ^= (state << 17n) & 0xffffffffffffffffn;
  return Number(state & 0xffffffffn) / 0x100000000;
};
const pick = (list) => list[Math.floor(random() * list.length)];
const number = (n) => Math.floor(random() * n);
const tools = ['send_mail', 'charge', 'http_get', 'write_file', 'search'];
const words = ['invoice', 'review', 'quarter', 'résumé', 'shipment', 'deadline', 'Ångström', 'budget', 'draft', '見積'];
const text = (n) => Array.from({ length: n }, () => pick(words)).join(' ');
const argsOf = {
  send_mail: () => ({ to: [`user${number(1e4)}@example.com`], subject: text(3), body: `${text(6)}\n-- \n"${pick(words)}"`, headers: { 'X-Priority': number(5), 'Message-Id': `<${number(1e9)}@mail>` } }),
  charge: () => ({ invoice: `2026-${number(1e6)}`, cents: number(1e7), currency: 'EUR', rate: number(1e4) / 1e4, customer: { id: number(1e9), name: text(2), vip: random() < 0.1 }, note: null }),
  http_get: () => ({ url: `https://api.example.com/v2/items/${number(1e6)}?page=${number(50)}`, timeout: number(60), headers: { accept: 'application/json', authorization: 'env:TOKEN' }, retry: { max: 3, backoff: 1.5 }, follow: true }),
  write_file: () => ({ path: `/srv/data/${pick(words)}/${number(1e5)}.txt`, mode: 420, content: `${text(5)}\n${text(4)}\n\t${text(2)}`, append: false }),
  search: () => ({ query: text(4), filters: { from: 1767225600000 + number(1e9), to: 1767225600000 + number(2e9), tags: [pick(words), pick(words)] }, limit: 20, score: random(), offset: number(1000) }),
};

let out = '';
for (let i = 0; i < count; i++) {
  const tool = pick(tools);
  out += JSON.stringify({
    id: i, runId: `01J9ZK5T${number(1e6)}`, genesis: `3f2a9c${number(1e9).toString(16)}`, execKeyDerivation: 2,
    agentSeq: number(40), ordinal: number(400), tool, args: argsOf[tool](),
  }) + '\n';
  if (out.length > 1 << 20) { process.stdout.write(out); out = ''; }
}
process.stdout.write(out);
