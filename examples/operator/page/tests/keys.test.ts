import assert from "node:assert/strict";
import { test } from "node:test";

import { ofTwo } from "../src/model/cards.js";
import { CLEAR_AFTER_MS, commandOf, DeleteKey, type Command, type KeyPress } from "../src/model/keys.js";

function press(key: string, more: Partial<KeyPress> = {}): Command | undefined {
  const none = { ctrl: false, meta: false, alt: false, repeat: false, typing: false, onButton: false };
  return commandOf({ key, ...none, ...more });
}

test("digits pick chips, space repeats, Ctrl+Z and Cmd+Z undo, Esc closes", () => {
  assert.deepEqual(press("1"), { does: "chip", index: 0 });
  assert.deepEqual(press("9"), { does: "chip", index: 8 });
  assert.deepEqual(press(" "), { does: "space" });
  assert.deepEqual(press("z", { ctrl: true }), { does: "undo" });
  assert.deepEqual(press("Z", { meta: true }), { does: "undo" });
  assert.deepEqual(press("Escape"), { does: "escape" });
});

test("in a field keys are text, and on a button space presses the button", () => {
  assert.equal(press("1", { typing: true }), undefined);
  assert.equal(press(" ", { onButton: true }), undefined);
  assert.equal(press("1", { ctrl: true }), undefined);
  assert.equal(press(" ", { repeat: true }), undefined);
  assert.deepEqual(press("Escape", { typing: true }), { does: "escape" });
});

test("Delete undoes on release; held for 3 s it clears, once", () => {
  const said: string[] = [];
  let timer: (() => void) | undefined;
  let wait = 0;
  const key = new DeleteKey((command) => said.push(command.does), {
    set: (run, ms) => {
      timer = run;
      wait = ms;
      return 1;
    },
    clear: () => {
      timer = undefined;
    },
  });
  key.down();
  key.up();
  assert.deepEqual(said, ["undo"]);
  key.down();
  key.down();
  timer?.();
  key.up();
  assert.deepEqual(said, ["undo", "clear"]);
  assert.equal(wait, CLEAR_AFTER_MS);
});

test("two cards are a pair or a high card", () => {
  assert.deepEqual(ofTwo(["Kd", "Ks"]), { category: "pair", rank: "K" });
  assert.deepEqual(ofTwo(["9c", "Th"]), { category: "high_card", rank: "T" });
  assert.equal(ofTwo([]), undefined);
});
