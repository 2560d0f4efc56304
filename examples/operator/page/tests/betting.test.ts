import assert from "node:assert/strict";
import { test } from "node:test";

import {
  betsOf,
  check,
  clear,
  double,
  EMPTY,
  isLive,
  place,
  rackOf,
  remove,
  repeat,
  setBet,
  totalOf,
  undo,
  type BetRule,
  type Placed,
  type Slip,
} from "../src/model/betting.js";

const ANTE: BetRule = { bet: "ante", min: 10n, max: 1000n, step: 2n, required: true, times: 2n };
const TRIPS: BetRule = { bet: "trips", min: 10n, max: 500n, step: 2n, required: false, times: 1n };
const RULES = [ANTE, TRIPS];

function placed(...clicks: [string, bigint][]): Slip {
  return clicks.reduce((slip, [bet, chip]) => place(slip, RULES, bet, chip, 1_000_000n).slip, EMPTY);
}

function refusal(result: Placed): string | undefined {
  return result.refusal?.reason;
}

test("a click adds the chip, and the blind of the system is in the total", () => {
  const slip = placed(["ante", 100n], ["ante", 100n], ["trips", 50n]);
  assert.deepEqual(slip.amounts, { ante: 200n, trips: 50n });
  assert.equal(totalOf(slip.amounts, RULES), 450n);
  assert.deepEqual(betsOf(slip.amounts), [
    { bet: "ante", amount_minor: "200" },
    { bet: "trips", amount_minor: "50" },
  ]);
});

test("the chip that passes the limit fills the bet up and says so, the next one is refused with the limit", () => {
  const filled = place(placed(["ante", 500n]), RULES, "ante", 600n, 10_000n);
  assert.equal(filled.slip.amounts["ante"], 1000n);
  assert.deepEqual(filled.refusal, { reason: "FILLED", bet: "ante", limit: 1000n });
  const refused = place(filled.slip, RULES, "ante", 10n, 10_000n);
  assert.equal(refused.slip, filled.slip);
  assert.deepEqual(refused.refusal, { reason: "AT_LIMIT", bet: "ante", limit: 1000n });
});

test("a chip that the balance does not cover is refused with what it covers", () => {
  const refused = place(EMPTY, RULES, "ante", 100n, 150n);
  assert.equal(refused.slip, EMPTY);
  assert.deepEqual(refused.refusal, { reason: "BALANCE", bet: "ante", limit: 74n, remedy: 74n });
  assert.equal(setBet(EMPTY, RULES, "ante", 74n, 150n).slip.amounts["ante"], 74n);
  const poor = place(EMPTY, RULES, "ante", 100n, 12n);
  assert.deepEqual(poor.refusal, { reason: "BALANCE", bet: "ante", limit: 6n }, "6 is below the minimum: no remedy");
});

test("a side bet needs an ante", () => {
  assert.equal(refusal(place(EMPTY, RULES, "trips", 10n, 1000n)), "ANTE_FIRST");
});

test("a chip smaller than the step is refused with the step", () => {
  assert.deepEqual(place(EMPTY, RULES, "ante", 1n, 1000n).refusal, { reason: "STEP", bet: "ante", limit: 2n });
});

test("2x doubles all bets, each up to its limit", () => {
  const doubled = double(placed(["ante", 400n], ["trips", 300n]), RULES, 10_000n);
  assert.deepEqual(doubled.slip.amounts, { ante: 800n, trips: 500n });
  assert.deepEqual(doubled.refusal, { reason: "FILLED", bet: "trips", limit: 500n });
  const top = double(double(doubled.slip, RULES, 10_000n).slip, RULES, 10_000n);
  assert.equal(refusal(top), "AT_LIMIT");
});

test("2x is refused as a whole unless the balance covers all of it", () => {
  const slip = placed(["ante", 100n], ["trips", 100n]);
  const refused = double(slip, RULES, 599n);
  assert.equal(refused.slip, slip);
  assert.deepEqual(refused.refusal, { reason: "BALANCE_DOUBLE", limit: 600n });
  assert.deepEqual(double(slip, RULES, 600n).slip.amounts, { ante: 200n, trips: 200n });
  assert.equal(refusal(double(EMPTY, RULES, 600n)), "NOTHING");
});

test("repeat works before the first chip only, caps at limits, and needs the balance for all", () => {
  const before = { ante: 100n, trips: 50n };
  assert.deepEqual(repeat(EMPTY, RULES, before, 250n).slip.amounts, before);
  assert.deepEqual(repeat(EMPTY, RULES, before, 249n).refusal, { reason: "BALANCE_REPEAT", limit: 250n });
  assert.equal(refusal(repeat(placed(["ante", 10n]), RULES, before, 1000n)), "NOT_EMPTY");
  assert.equal(refusal(repeat(EMPTY, RULES, {}, 1000n)), "NOTHING");
  assert.equal(repeat(EMPTY, RULES, { ante: 5000n }, 10_000n).slip.amounts["ante"], 1000n);
});

test("undo takes placements back in their order, a clear too", () => {
  let slip = placed(["ante", 100n], ["trips", 50n]);
  slip = clear(slip).slip;
  assert.deepEqual(slip.amounts, {});
  slip = undo(slip).slip;
  assert.deepEqual(slip.amounts, { ante: 100n, trips: 50n });
  slip = undo(undo(slip).slip).slip;
  assert.deepEqual(slip.amounts, {});
  assert.equal(refusal(undo(slip)), "NOTHING");
  assert.equal(refusal(clear(slip)), "NOTHING");
});

test("a right click removes the chip, or the whole bet where the chip is larger", () => {
  const slip = placed(["ante", 100n], ["ante", 50n], ["trips", 50n]);
  assert.deepEqual(remove(slip, RULES, "ante", 50n).slip.amounts, { ante: 100n, trips: 50n });
  assert.deepEqual(remove(slip, RULES, "trips", 100n).slip.amounts, { ante: 150n });
  assert.deepEqual(remove(slip, RULES, "ante", 500n).slip.amounts, {}, "a side bet needs its ante");
  assert.equal(refusal(remove(EMPTY, RULES, "ante", 10n)), "NOTHING");
});

test("bets are checked before the deal", () => {
  assert.deepEqual(check(EMPTY, RULES, 100n), { reason: "BELOW_MINIMUM", bet: "ante", limit: 10n });
  assert.equal(check(placed(["ante", 10n]), RULES, 20n), undefined);
  assert.equal(check(placed(["ante", 10n]), RULES, 19n)?.reason, "BALANCE");
  assert.deepEqual(check(placed(["ante", 10n], ["trips", 4n]), RULES, 100n), {
    reason: "BELOW_MINIMUM",
    bet: "trips",
    limit: 10n,
  });
  assert.equal(check({ amounts: { ante: 11n }, past: [] }, RULES, 100n)?.reason, "STEP");
  assert.equal(check({ amounts: { ante: 2000n }, past: [] }, RULES, 10_000n)?.reason, "AT_LIMIT");
});

test("the rack has the chips between least and most bet; those above the balance are not live", () => {
  assert.deepEqual(rackOf(RULES), [10n, 50n, 100n, 500n, 1000n]);
  const slip = placed(["ante", 100n]);
  assert.equal(isLive(100n, slip, RULES, 300n), true);
  assert.equal(isLive(500n, slip, RULES, 300n), false);
  assert.deepEqual(rackOf([{ ...ANTE, max: 100_000n }], 8).length, 8);
});
