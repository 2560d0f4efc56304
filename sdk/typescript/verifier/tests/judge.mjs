/**
 * Judges exports for another program: a JSON object a line in, `{export, keys, root}` with the bytes in base64, and a line
 * out with what verifyExport says.
 */

import { createInterface } from "node:readline";
import { verifyExport } from "../dist/index.js";

const bytes = (text) => Uint8Array.from(Buffer.from(text, "base64"));

for await (const line of createInterface({ input: process.stdin })) {
  const { export: lines, keys, root } = JSON.parse(line);
  const report = await verifyExport(bytes(lines), bytes(keys), root ? { root } : {});
  const failures = report.failures.map(({ check, name, line: number, place }) => [`${check} ${name}`, number ?? place]);
  const { counts, lastLine, passed } = report;
  process.stdout.write(`${JSON.stringify({ counts, failures, lastLine, passed })}\n`);
}
