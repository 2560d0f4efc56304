/** Request ids begin with the time and differ otherwise. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newRequestId } from "../src/index.js";

test("a request id is a UUID of version 7 with the time in front", () => {
  const before = Date.now();
  const found = Array.from({ length: 1000 }, newRequestId);
  const after = Date.now();
  assert.equal(new Set(found).size, 1000);
  for (const id of found) {
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const time = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
    assert.ok(before <= time && time <= after, id);
  }
});
