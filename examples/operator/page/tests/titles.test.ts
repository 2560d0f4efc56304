import assert from "node:assert/strict";
import { test } from "node:test";

import type { Step } from "../src/proof/protocol.js";
import { titleKey, unconfirmed } from "../src/proof/titles.js";
import de from "../src/words/de.js";
import en from "../src/words/en.js";
import it from "../src/words/it.js";

const step = (name: string, verdict: Step["verdict"], looked: Record<string, string> = {}): Step => ({ name, verdict, looked, message: "" });

test("a root that nobody has confirmed is not called the pinned one", () => {
  const found = { anchored: true, steps: [step("keys", "ok"), step("root", "ok", { root: "aa", pinned: "aa" })] };
  const { anchored, steps } = unconfirmed(found, "aa");
  assert.equal(anchored, false);
  assert.deepEqual(steps[1], step("root", "unpinned", { root: "aa", first_seen: "aa" }));
  assert.equal(titleKey(steps[1] as Step), "step.root_first");
  assert.deepEqual(steps[0], found.steps[0]);
});

test("a root that has changed since it was seen first fails all the same", () => {
  const { steps } = unconfirmed({ steps: [step("root", "failed")] }, "bb");
  assert.equal(steps[0]?.verdict, "failed");
  assert.equal(titleKey(steps[0] as Step), "step.root_first");
});

test("a root that the player has pinned is called so", () => {
  assert.equal(titleKey(step("root", "ok", { root: "aa", pinned: "aa" })), "step.root");
  assert.equal(titleKey(step("root", "failed")), "step.root");
  assert.equal(titleKey(step("root", "unpinned", { root: "aa", pinned: "" })), "step.root_none");
});

test("one seat is not called one of several", () => {
  assert.equal(titleKey(step("path", "ok", { seat: "{}", path: "", seats_root: "aa" })), "step.path_alone");
  assert.equal(titleKey(step("path", "ok", { seat: "{}", path: "aa bb", seats_root: "aa" })), "step.path");
});

test("each language has these words", () => {
  for (const words of [en, it, de]) {
    for (const key of ["step.root_first", "step.root_none", "step.path_alone"] as const) assert.ok(words[key]);
  }
});
