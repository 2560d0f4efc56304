import assert from "node:assert/strict";
import { test } from "node:test";

import type { Message } from "../src/model/connection.js";
import { pushed } from "../src/state/pushed.js";
import { RealityChecks } from "../src/state/reality.js";
import type { Store } from "../src/state/store.js";

function world() {
  const asked: unknown[] = [];
  const link = { request: async (type: string, fields: unknown) => void asked.push([type, fields]) };
  const store = { emit: () => {}, link } as unknown as Store;
  const checks = new RealityChecks(store);
  Object.assign(store, { realityChecks: checks });
  const hear = (type: string, value: unknown): void => pushed(store, { type, value } as Message);
  return { asked, checks, hear };
}

test("checks of several tables are shown one behind the other, and each is confirmed", async () => {
  const { asked, checks, hear } = world();
  hear("reality_check", { session_id: "A", elapsed_ms: "1" });
  hear("reality_check", { session_id: "B", elapsed_ms: "2" });
  hear("reality_check", { session_id: "A", elapsed_ms: "3" });
  assert.deepEqual(checks.shown, { session_id: "A", elapsed_ms: "3" });
  await checks.seen();
  assert.equal(checks.shown?.session_id, "B");
  await checks.seen();
  assert.equal(checks.shown, undefined);
  await checks.seen();
  assert.deepEqual(asked, [["reality_check_seen", { session_id: "A" }], ["reality_check_seen", { session_id: "B" }]]);
});

test("a check that was seen on another page is shown no more, and is not confirmed again", () => {
  const { asked, checks, hear } = world();
  hear("reality_check", { session_id: "A" });
  hear("reality_check", { session_id: "B" });
  hear("reality_check_seen", { session_id: "A" });
  assert.equal(checks.shown?.session_id, "B");
  hear("reality_check_seen", { session_id: "B" });
  assert.equal(checks.shown, undefined);
  assert.deepEqual(asked, []);
});
