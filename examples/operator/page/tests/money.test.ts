import assert from "node:assert/strict";
import { test } from "node:test";

import { formatChip, formatMoney, formatNet, parseMoney, plainMoney } from "../src/model/money.js";

test("amounts are exact, in the currency's exponent and the language's signs", () => {
  assert.equal(formatMoney(1250n, 2, "EUR", "en"), "€12.50");
  assert.equal(formatMoney(1250n, 2, "EUR", "de").replace(/\s/g, " "), "12,50 €");
  assert.equal(formatMoney(9_007_199_254_740_993_07n, 2, "EUR", "en"), "€9,007,199,254,740,993.07");
  assert.equal(formatMoney(500n, 0, "JPY", "en"), "¥500");
  assert.equal(formatMoney(1n, 3, "BHD", "en").replace(/\s/g, " "), "BHD 0.001");
});

test("a loss below one unit keeps its sign", () => {
  assert.equal(formatMoney(-50n, 2, "EUR", "en"), "\u2212€0.50");
  assert.equal(formatNet(50n, 2, "EUR", "en"), "+€0.50");
  assert.equal(formatNet(0n, 2, "EUR", "en"), "€0.00");
});

test("typed amounts are taken with point or comma, and refused where they are no amount", () => {
  assert.equal(parseMoney("2.40", 2), 240n);
  assert.equal(parseMoney(" 2,4 ", 2), 240n);
  assert.equal(parseMoney("1000", 2), 100_000n);
  assert.equal(parseMoney("7", 0), 7n);
  for (const text of ["", "2.405", "-1", "1e3", "1.000,00", "€5", "7.", "0x10"]) {
    assert.equal(parseMoney(text, 2), text === "7." ? 700n : undefined, text);
  }
  assert.equal(parseMoney("7.5", 0), undefined);
});

test("what is typed and what is shown in the field agree", () => {
  for (const minor of [0n, 5n, 240n, 100_000n]) assert.equal(parseMoney(plainMoney(minor, 2), 2), minor);
});

test("chips have short faces", () => {
  assert.deepEqual(
    [10n, 50n, 500n, 100_000n].map((chip) => formatChip(chip, 2, "en")),
    ["0.1", "0.5", "5", "1k"],
  );
  assert.equal(formatChip(10n, 2, "it"), "0,1");
});
