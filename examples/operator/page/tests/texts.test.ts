import assert from "node:assert/strict";
import { test } from "node:test";

import { labelOf, textOf, type TextsByGame } from "../src/model/texts.js";

const texts: TextsByGame = {
  "": { malfunctions: { "": "a malfunction", CARD_READER: "the card reader" }, results: { WON: "won" } },
  uth: { malfunctions: { DECK: "the deck of this game" } },
};

test("a malfunction that is not listed, or has no code, has the text of the contract for it", () => {
  assert.equal(textOf(texts, "uth", "malfunctions", "CARD_READER"), "the card reader");
  assert.equal(textOf(texts, "uth", "malfunctions", "DECK"), "the deck of this game");
  assert.equal(textOf(texts, "uth", "malfunctions", "SOMETHING_NEW"), "a malfunction");
  assert.equal(textOf(texts, "uth", "malfunctions", undefined), "a malfunction");
});

test("elsewhere a code without a text is shown as it is, and nothing for no code", () => {
  assert.equal(labelOf(texts, "uth", "results", "WON"), "Won");
  assert.equal(textOf(texts, "uth", "results", "NEWER"), "NEWER");
  assert.equal(textOf(texts, "uth", "results", undefined), "");
});
