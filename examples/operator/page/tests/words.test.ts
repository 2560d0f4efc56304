import assert from "node:assert/strict";
import { test } from "node:test";

import de from "../src/words/de.js";
import en from "../src/words/en.js";
import it from "../src/words/it.js";

const holes = (text: string): string[] => [...text.matchAll(/\{\w+\}/g)].map(String).sort();

for (const [language, words] of Object.entries({ de, it })) {
  test(`${language} has the keys of English, each with the same placeholders, and none is empty`, () => {
    assert.deepEqual(Object.keys(words), Object.keys(en));
    for (const [key, text] of Object.entries(words)) {
      assert.deepEqual(holes(text), holes(en[key as keyof typeof en]), key);
      assert.notEqual(text.trim(), "", key);
    }
  });
}

test("German is written as in Switzerland", () => {
  assert.deepEqual(Object.entries(de).filter(([, text]) => text.includes("ß")), []);
});
