// node lines.mjs FILE: JSON.parse of each line, as any JavaScript reader of a ledger has to; prints how many.
import { readFileSync } from "node:fs";

let count = 0;
for (const line of readFileSync(process.argv[2], "utf8").split("\n")) {
	if (line.trim() === "") continue;
	JSON.parse(line);
	count++;
}
console.log(count);
