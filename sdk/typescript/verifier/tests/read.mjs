/** What several tests read: the scenarios, and statements in them. */

import { readFileSync, readdirSync } from "node:fs";

const VECTORS = new URL("../../../../tests/vectors/", import.meta.url);
const SCENARIOS = new URL("statements/scenarios/", VECTORS);

export const NAMES = readdirSync(SCENARIOS)
  .filter((name) => name.endsWith(".json"))
  .map((name) => name.slice(0, -5))
  .sort();

export function scenario(name) {
  return JSON.parse(readFileSync(new URL(`${name}.json`, SCENARIOS), "ascii"));
}

export function vector(path) {
  return readFileSync(new URL(path, VECTORS), "utf8");
}

export function payload(line) {
  const { envelope } = JSON.parse(line);
  return JSON.parse(Buffer.from((envelope ?? JSON.parse(line)).payload, "base64").toString("ascii"));
}

/** The envelope of an export line, as it stands there. */
export function envelope(line) {
  return line.slice('{"envelope":'.length, line.indexOf(',"private":'));
}

/** The lines of some kinds. */
export function ofKind(lines, ...kinds) {
  return lines.filter((line) => kinds.includes(payload(line).kind));
}
