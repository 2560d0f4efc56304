/** Every scenario of the repository: the last line and the failed checks are those that it names. */

import assert from "node:assert/strict";
import test from "node:test";
import { verifyExport } from "../dist/index.js";
import { NAMES, scenario, vector } from "./read.mjs";

test("there are scenarios", () => {
  assert.ok(NAMES.length >= 38);
});

for (const name of NAMES) {
  test(`scenario ${name}`, async () => {
    const { lines, keys, root, expect, checks } = scenario(name);
    const report = await verifyExport(lines.map((line) => `${line}\n`), keys, root ? { root } : {});
    const found = [...new Set(report.failures.map((failure) => `${failure.check} ${failure.name}`))].sort();
    assert.deepEqual(found, checks);
    assert.equal(report.lastLine, expect);
    assert.equal(report.passed, checks.length === 0);
  });
}

test("a record from before version 0.1.0 is refused by its schema, as by certify replay", async () => {
  const report = await verifyExport(vector("before-0.1.0/statements.jsonl"), vector("before-0.1.0/keys.json"));
  assert.equal(report.passed, false);
  assert.ok(report.failures.some((failure) => failure.check === 4));
});

test("a key bundle that is cut is refused, and nothing is verified", async () => {
  const { lines, keys, root } = scenario("small");
  const report = await verifyExport(lines.map((line) => `${line}\n`), keys.slice(0, -2), { root });
  assert.equal(report.lastLine, "0 rounds verified, 0 failed, UNANCHORED");
  assert.deepEqual([report.failures[0].check, report.failures[0].place], [3, "keys"]);
});
