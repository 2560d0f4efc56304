import assert from "node:assert/strict";
import { test } from "node:test";

import { languagesOf, mayPlayDemo, mayRepeat, maySkip, tablesAtOnce } from "../src/model/jurisdiction.js";

test("what a jurisdiction does not allow is off: proto3 JSON leaves false and 0 out", () => {
  const britain = { id: "gb-ukgc", languages: ["en"], tables_max: 1 };
  assert.deepEqual([mayRepeat(britain), mayPlayDemo(britain), maySkip(britain)], [false, false, false]);
  assert.equal(tablesAtOnce(britain, 4), 1);
  assert.deepEqual(languagesOf(britain, ["it", "de", "en"]), ["en"]);
  assert.equal(tablesAtOnce({}, 4), 0);
});

test("what it allows is on, as far as the screen has room", () => {
  const demo = { repeat_allowed: true, demo_allowed: true, skip_animations_allowed: true, tables_max: 9 };
  assert.deepEqual([mayRepeat(demo), mayPlayDemo(demo), maySkip(demo)], [true, true, true]);
  assert.equal(tablesAtOnce(demo, 4), 4);
  assert.deepEqual(languagesOf(demo, ["it", "de", "en"]), ["it", "de", "en"]);
});
