/** One round from its signed statements: each step holds, and each planted fault fails the step that it concerns. */

import assert from "node:assert/strict";
import test from "node:test";
import { verifyRound } from "../dist/index.js";
import { envelope, NAMES, ofKind, payload, scenario } from "./read.mjs";

const SMALL = scenario("small");

function input(lines, keys = SMALL.keys) {
  return { keys, statements: ofKind(lines, "instance_start", "round_opening", "round_final") };
}

function verdicts(report) {
  return Object.fromEntries(report.steps.map((step) => [step.step, step.verdict]));
}

const STEPS_OF_A_ROUND = [
  ...["keys", "root", "instance", "opening", "rules", "path", "stakes", "final", "answer", "commitment"],
  ...["transcript", "cards", "actions", "hands", "settlement", "balance", "log"],
];

test("a round verifies step by step, in the order in which a page shows them", async () => {
  const report = await verifyRound(input(SMALL.lines), { root: SMALL.root });
  assert.equal(report.verdict, "verified");
  assert.equal(report.isAnchored, true);
  assert.deepEqual(report.steps.map((step) => step.step), STEPS_OF_A_ROUND);
  assert.deepEqual(report.steps.filter((step) => step.verdict !== "ok").map((step) => step.code), ["LOG_SKIPPED"]);
  assert.equal(report.steps.at(-1).message, "no proof is given that the log holds the statements");
  const byName = Object.fromEntries(report.steps.map((step) => [step.step, step]));
  const final = payload(SMALL.lines[4]);
  assert.equal(byName.commitment.code, "COMMITMENT_OK");
  assert.equal(byName.commitment.looked.salt, final.salt);
  assert.equal(byName.transcript.looked.deck, final.deck.join(" "));
  assert.equal(byName.balance.looked.balance_after_minor, "11000");
});

test("envelopes by themselves, in any order, say the same", async () => {
  const { keys, statements } = input(SMALL.lines);
  const alone = statements.map(envelope).reverse();
  const report = await verifyRound({ keys, statements: alone }, { root: SMALL.root });
  assert.deepEqual(report, await verifyRound({ keys, statements }, { root: SMALL.root }));
});

test("without a final the round is open, without a root it is not anchored", async () => {
  const { keys, statements } = input(SMALL.lines);
  const report = await verifyRound({ keys, statements: statements.slice(0, 2) });
  assert.deepEqual([report.verdict, report.isAnchored], ["open", false]);
  assert.equal(verdicts(report).root, "unpinned");
});

test("another root fails the round", async () => {
  const report = await verifyRound(input(SMALL.lines), { root: "0".repeat(64) });
  assert.deepEqual([report.verdict, report.isAnchored, verdicts(report).root], ["failed", false, "failed"]);
});

test("a key that is for development is told", async () => {
  const { lines, keys, root } = scenario("development");
  assert.equal((await verifyRound(input(lines, keys), { root })).isDevelopment, true);
});

const PLANTED = {
  a_byte_too_few: "transcript",
  a_byte_too_many: "transcript",
  action_underpriced: "actions",
  another_deck_the_old_commitment: "commitment",
  balance_after_the_round: "balance",
  bet_returns_less: "settlement",
  better_category: "hands",
  hole_cards_swapped: "cards",
  signed_by_nobody: "final",
};

for (const [name, step] of Object.entries(PLANTED)) {
  test(`planted: ${name} fails the step ${step}`, async () => {
    assert.ok(NAMES.includes(name));
    const { lines, keys, root } = scenario(name);
    const report = await verifyRound(input(lines, keys), { root });
    assert.equal(report.verdict, "failed");
    assert.equal(verdicts(report)[step], "failed");
    const failed = report.steps.find((one) => one.verdict === "failed");
    assert.equal(failed.code, `${step.toUpperCase()}_FAILED`);
    assert.notEqual(failed.message, "");
  });
}

// --- free bets, bets that are debited one by one, play money ---

/** The ids of the rounds of solo play in a scenario, in order. */
function roundsOf(lines) {
  return [...new Set(ofKind(lines, "round_opening").map((line) => payload(line).deal.round_id))];
}

/** A round of a scenario, its statements in the wrong order; without those that `isLeftOut` names. */
function verified({ lines, keys, root }, roundId, isLeftOut = () => false) {
  const statements = lines.filter((line) => !isLeftOut(payload(line))).reverse();
  return verifyRound({ keys, statements, roundId }, { root });
}

function stepOf(report, name) {
  return report.steps.find((step) => step.step === name);
}

const FREE = scenario("free_bets");
const [FIRST, OWN, VOID, FOLDED, WITH_TRIPS] = roundsOf(FREE.lines);
const isFreeBet = ({ kind }) => kind === "free_bet";

test("a round that a free bet paid for shows what was paid, and what went back", async () => {
  const found = [];
  for (const roundId of [FIRST, VOID, FOLDED, WITH_TRIPS]) {
    const report = await verified(FREE, roundId);
    assert.deepEqual([report.verdict, report.isDemo], ["verified", false]);
    assert.deepEqual(report.steps.filter((step) => step.verdict !== "ok").map((step) => step.code), ["LOG_SKIPPED"]);
    const { campaign, granted_minor, reclaimed_minor, grant_id } = stepOf(report, "free_bet").looked;
    assert.equal(stepOf(report, "stakes").looked.free_bet, grant_id);
    found.push([campaign, granted_minor, reclaimed_minor]);
  }
  const paidAndBack = [["200", "0"], ["40", "40"], ["60", "0"], ["400", "400"]];
  assert.deepEqual(found, paidAndBack.map((amounts) => ["spring", ...amounts]));
});

test("without its free_bet statements a round verifies, and a step says that the campaign's part is not shown", async () => {
  for (const roundId of [FIRST, OWN, VOID, FOLDED, WITH_TRIPS]) {
    const report = await verified(FREE, roundId, isFreeBet);
    assert.equal(report.verdict, "verified");
    assert.equal(stepOf(report, "free_bet"), undefined);
    assert.match(stepOf(report, "stakes").looked.free_bet, /^not shown/);
  }
});

for (const [direction, missing] of [["debit", "what the campaign paid"], ["credit", "what went back to the campaign"]]) {
  test(`with one of the two free_bet statements the step says that ${missing} is not shown`, async () => {
    const report = await verified(FREE, FIRST, (body) => isFreeBet(body) && body.direction === direction);
    assert.equal(report.verdict, "verified");
    const { verdict, message, code, looked } = stepOf(report, "free_bet");
    assert.deepEqual([verdict, code], ["skipped", "FREE_BET_SKIPPED"]);
    assert.ok(message.startsWith(`${missing} is not shown`));
    assert.equal(typeof looked.grant_id, "string");
  });
}

test("a round that is open shows what the campaign paid", async () => {
  const report = await verified(FREE, FIRST, (body) => body.kind === "round_final" || body.direction === "credit");
  assert.deepEqual([report.verdict, stepOf(report, "free_bet").verdict], ["open", "ok"]);
});

test("planted: a return above what came back fails the step free_bet", async () => {
  const changed = scenario("the_campaign_gets_more_back");
  const report = await verified(changed, roundsOf(changed.lines)[0]);
  assert.equal(report.verdict, "failed");
  assert.deepEqual(report.steps.filter((step) => step.verdict === "failed").map((step) => [step.step, step.check]), [["free_bet", 18]]);
});

test("each round whose bets were debited one by one verifies with its transfers, in whatever order they come", async () => {
  const seamless = scenario("seamless");
  const rounds = roundsOf(seamless.lines);
  assert.equal(rounds.length, 4);
  for (const roundId of rounds) {
    const report = await verified(seamless, roundId);
    assert.equal(report.verdict, "verified");
    assert.equal("free_bet" in stepOf(report, "stakes").looked, false);
  }
});

test("play money is told, and so are the limits that were signed", async () => {
  const second = scenario("second_versions");
  const opens = new Map(ofKind(second.lines, "session_open").map((line) => [payload(line).session_id, payload(line)]));
  const found = [];
  for (const roundId of roundsOf(second.lines)) {
    const report = await verified(second, roundId);
    assert.equal(report.verdict, "verified");
    assert.equal(report.isDemo, opens.get(report.sessionId).mode === "demo");
    found.push([report.isDemo, stepOf(report, "session_open").looked.bet_limits]);
    const bare = await verified(second, roundId, ({ kind }) => kind === "session_open");
    assert.deepEqual([bare.verdict, bare.isDemo], ["verified", null]);
  }
  const ante = "ante 50 to 200";
  assert.deepEqual(found, [[false, undefined], [true, ante], [true, ante], [false, `${ante}; trips 50 to 200`]]);
});

test("planted: a bet above the signed limit fails the step stakes", async () => {
  const changed = scenario("bet_above_the_signed_limit");
  const failed = [];
  for (const roundId of roundsOf(changed.lines)) {
    const report = await verified(changed, roundId);
    failed.push(...report.steps.filter((step) => step.verdict === "failed").map((step) => step.step));
  }
  assert.ok(failed.includes("stakes"));
});

// --- seats at tables ---

/** What a page holds of each seat of a round, its path beside the opening or by itself. */
function seats(name) {
  const { lines, keys, root } = scenario(name);
  const all = lines.map((line) => ({ line, body: payload(line) }));
  const shared = ["table_round", "table_deal", "table_final"];
  return all
    .filter(({ body }) => body.kind === "seat_opening")
    .map(({ body: { round_id: round, session_id: session } }) => {
      const isIts = ({ body }) =>
        body.kind === "instance_start" ||
        (body.round_id === round && (shared.includes(body.kind) || body.session_id === session));
      return { keys, root, statements: all.filter(isIts).map(({ line }) => line) };
    });
}

const STEPS_OF_A_SEAT = [
  ...["keys", "root", "instance", "table_round", "table_deal", "opening", "rules", "path", "stakes", "table_final"],
  ...["final", "answer", "commitment", "transcript", "cards", "windows", "actions", "hands", "settlement", "balance"],
  "log",
];

for (const name of ["table_shared", "table_boxes", "table_session"]) {
  test(`each seat of ${name} verifies by itself`, async () => {
    const found = seats(name);
    assert.ok(found.length >= 4);
    for (const { keys, root, statements } of found) {
      const report = await verifyRound({ keys, statements }, { root });
      assert.equal(report.verdict, "verified");
      assert.equal(report.steps.some((step) => step.verdict === "failed"), false);
      if (report.voidReason === "") assert.deepEqual(report.steps.map((step) => step.step), STEPS_OF_A_SEAT);
    }
    assert.ok(found.length % 4 === 0);
  });
}

test("a seat whose statements come as envelopes needs its path beside them", async () => {
  const [{ keys, root, statements }] = seats("table_boxes");
  const { path } = statements.map((line) => JSON.parse(line)).find((line) => line.path);
  const bare = statements.map((line) => envelope(line).replace(/,"path":.*$/, ""));
  assert.equal((await verifyRound({ keys, statements: bare, path }, { root })).verdict, "verified");
  const without = await verifyRound({ keys, statements: bare }, { root });
  assert.deepEqual([without.verdict, verdicts(without).path], ["failed", "failed"]);
  const other = [...path.slice(1), path[0]];
  assert.equal(verdicts(await verifyRound({ keys, statements: bare, path: other }, { root })).path, "failed");
});

test("a seat without the statements that all share is not verified", async () => {
  const [{ keys, root, statements }] = seats("table_shared");
  for (const kind of ["table_round", "table_deal", "table_final"]) {
    const rest = statements.filter((line) => payload(line).kind !== kind);
    assert.equal((await verifyRound({ keys, statements: rest }, { root })).verdict, "failed", kind);
  }
});

test("a deck that nobody can open is told: the round is void, and nothing of its cards was verified", async () => {
  const reports = [];
  for (const { keys, root, statements } of seats("table_boxes")) reports.push(await verifyRound({ keys, statements }, { root }));
  const hidden = reports.filter((report) => report.voidReason === "DECK_UNRECOVERABLE");
  assert.equal(hidden.length, 3);
  for (const report of hidden) assert.deepEqual([verdicts(report).commitment, verdicts(report).void], ["skipped", "ok"]);
});

test("planted at a table: a decision outside of its window fails the step windows", async () => {
  const failing = [];
  for (const { keys, root, statements } of seats("a_decision_in_another_phases_window")) {
    const report = await verifyRound({ keys, statements }, { root });
    failing.push(...report.steps.filter((step) => step.verdict === "failed").map((step) => step.step));
  }
  assert.deepEqual([...new Set(failing)], ["windows"]);
});

test("a statement of a kind that is not known is refused in words", async () => {
  const { keys, statements } = input(SMALL.lines);
  const changed = statements[1].replace("vnd.rgs.round-opening.v1", "vnd.rgs.round-opening.v9");
  const report = await verifyRound({ keys, statements: [statements[0], changed, statements[2]] }, { root: SMALL.root });
  assert.equal(report.verdict, "refused");
  assert.match(report.steps[0].message, /does not know statements of this type: .*round-opening\.v9/);
});

test("of a whole session the round that is asked for is verified", async () => {
  const { lines, keys, root } = scenario("table_session");
  const rounds = [...new Set(ofKind(lines, "seat_opening").map((line) => payload(line).round_id))];
  assert.equal(rounds.length, 4);
  for (const roundId of rounds) {
    const report = await verifyRound({ keys, statements: lines, roundId }, { root });
    assert.deepEqual([report.verdict, report.roundId], ["verified", roundId]);
  }
});

test("how long a round takes is printed, not gated", async () => {
  const one = input(SMALL.lines);
  for (let turn = 0; turn < 20; turn += 1) await verifyRound(one, { root: SMALL.root });
  const from = process.cpuUsage();
  for (let turn = 0; turn < 50; turn += 1) await verifyRound(one, { root: SMALL.root });
  const { user, system } = process.cpuUsage(from);
  console.log(`${((user + system) / 50_000).toFixed(1)} ms of processor time a round`);
});
