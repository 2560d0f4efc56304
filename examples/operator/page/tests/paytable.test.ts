import assert from "node:assert/strict";
import { test } from "node:test";

import { paytableRows } from "../src/ui/paytable-rows.js";

const rows = (text: string): { category: string; pays: string }[] =>
  text.split(" ").map((each) => {
    const at = each.lastIndexOf("=");
    return { category: each.slice(0, at), pays: each.slice(at + 1) };
  });
const HIGH = "royal_flush=500:1 straight_flush=50:1 quads=10:1 full_house=3:1 flush=3:2 straight=1:1";
const BLIND = { bet: "blind", rows: rows(`${HIGH} trips=push two_pair=push pair=push high_card=push`) };
const TRIPS = {
  bet: "trips",
  rows: rows("royal_flush=50:1 straight_flush=40:1 quads=30:1 full_house=8:1 flush=7:1 straight=4:1 trips=3:1 two_pair=lost pair=lost high_card=lost"),
};
const ANTE = { bet: "ante", rows: rows("royal_flush=100:1 straight=1:1 trips=1:1 two_pair=1:1 pair=1:1 high_card=1:1") };
const AA = { bet: "aa", rows: rows("royal_flush=100:1 straight=7:1 trips=7:1 two_pair=7:1 pair:A=7:1") };

test("two paytables are one table, and hands that pay the same share a row", () => {
  const lines = paytableRows([BLIND, TRIPS]);
  assert.deepEqual(lines.map((line) => [line.rows.join("+"), ...line.pays]).slice(-3), [
    ["straight", "1:1", "4:1"],
    ["trips", "push", "3:1"],
    ["two_pair+pair+high_card", "push", "lost"],
  ]);
  assert.deepEqual(lines.map((line) => line.isRest).filter(Boolean), [true]);
  assert.equal(lines.length, 8);
});

test("a pair of aces is a row where a bet pays on it, and a pair for the other bet", () => {
  const lines = paytableRows([ANTE, AA]).slice(-2);
  assert.deepEqual(lines, [
    { rows: ["straight", "trips", "two_pair", "pair:A"], pays: ["1:1", "7:1"], isRest: false },
    { rows: ["pair", "high_card"], pays: ["1:1", "lost"], isRest: true },
  ]);
});

test("hands on which no bet pays are no row", () => {
  assert.deepEqual(paytableRows([TRIPS]).map((line) => line.rows.join("+")).at(-1), "trips");
  assert.deepEqual(paytableRows([]), []);
});
