/** The receipt that a page saves, and the files of a dispute: honest, planted, absent, and not what they say. */

import assert from "node:assert/strict";
import test from "node:test";
import { base64, utf8 } from "../dist/bytes.js";
import { parseSavedReceipt, SavedFileError, verifyDispute, verifySavedReceipt } from "../dist/index.js";
import { notary } from "./notary.mjs";
import { envelope, ofKind, payload, scenario } from "./read.mjs";

const FREE = scenario("free_bets");
const OPENINGS = ofKind(FREE.lines, "round_opening");
const text64 = (line) => base64(utf8(envelope(line)));
const keysOf = (bundle) => JSON.parse(bundle).statements.map((one) => base64(utf8(JSON.stringify(one))));

/** The receipt of a round of a scenario, as a page saves it. */
function receiptOf({ lines, keys }, roundId) {
  const bodies = lines.map((line) => ({ line, body: payload(line) }));
  const its = bodies.filter(({ body }) => (body.deal?.round_id ?? body.round_id) === roundId);
  const one = (kind) => its.filter(({ body }) => body.kind === kind).map(({ line }) => text64(line));
  return {
    format: "rgs/page-receipt/v1",
    record: {
      summary: { round_id: roundId },
      round: { round_id: roundId },
      opening: one("round_opening")[0],
      final: one("round_final")[0],
      free_bets: one("free_bet"),
    },
    keys: keysOf(keys),
    instances: { "rgs-1": text64(ofKind(lines, "instance_start")[0]) },
    log_proofs: {},
  };
}

const FIRST = payload(OPENINGS[0]).deal.round_id;
const SECOND = payload(OPENINGS[1]).deal.round_id;
const RECEIPT = receiptOf(FREE, FIRST);
const ROOT = { root: FREE.root };

function changed(change) {
  const copy = structuredClone(RECEIPT);
  change(copy);
  return JSON.stringify(copy);
}

function stepOf(report, name) {
  return report.steps.find((step) => step.step === name);
}

test("a saved receipt holds the free bet of its round, and says what the campaign paid and got back", async () => {
  const report = await verifySavedReceipt(JSON.stringify(RECEIPT), ROOT);
  assert.deepEqual([report.verdict, report.isAnchored, report.roundId], ["verified", true, FIRST]);
  const { verdict, looked } = stepOf(report, "free_bet");
  assert.deepEqual([verdict, looked.granted_minor, looked.reclaimed_minor], ["ok", "200", "0"]);
});

test("a receipt without its free bets, or with one of them, says that a part is not shown", async () => {
  const without = await verifySavedReceipt(changed(({ record }) => delete record.free_bets), ROOT);
  assert.deepEqual([without.verdict, stepOf(without, "free_bet")], ["verified", undefined]);
  assert.match(stepOf(without, "stakes").looked.free_bet, /^not shown/);
  for (const at of [0, 1]) {
    const one = await verifySavedReceipt(changed(({ record }) => record.free_bets.splice(at, 1)), ROOT);
    assert.deepEqual([one.verdict, stepOf(one, "free_bet").code], ["verified", "FREE_BET_SKIPPED"]);
  }
});

test("planted: a free bet that was changed fails its step", async () => {
  const [debit] = RECEIPT.record.free_bets;
  const inside = JSON.parse(atob(debit));
  const said = atob(inside.payload).replace('"amount_minor":"200"', '"amount_minor":"400"');
  assert.notEqual(said, atob(inside.payload));
  const forged = btoa(atob(debit).replace(inside.payload, btoa(said)));
  const report = await verifySavedReceipt(changed(({ record }) => (record.free_bets[0] = forged)), ROOT);
  assert.deepEqual([report.verdict, stepOf(report, "free_bet").code, stepOf(report, "free_bet").check], ["failed", "FREE_BET_FAILED", 3]);
});

test("planted: signed free bets that do not fit the round fail", async () => {
  const more = scenario("the_campaign_gets_more_back");
  const roundId = payload(ofKind(more.lines, "round_opening")[0]).deal.round_id;
  const report = await verifySavedReceipt(JSON.stringify(receiptOf(more, roundId)), { root: more.root });
  assert.deepEqual([report.verdict, stepOf(report, "free_bet").check], ["failed", 18]);
});

const OTHER = receiptOf(FREE, payload(OPENINGS[2]).deal.round_id).record;
const STRANGE = {
  "no JSON": "{",
  "a list": "[]",
  "null": "null",
  "another format": changed((receipt) => (receipt.format = "rgs/page-receipt/v2")),
  "a field that nobody knows": changed((receipt) => (receipt.more = "")),
  "a part that nobody knows": changed(({ record }) => (record.transfers = [])),
  "no keys": changed((receipt) => (receipt.keys = [])),
  "no record": changed((receipt) => delete receipt.record),
  "a statement that is no base64": changed(({ record }) => (record.final = "%%%")),
  "a number for a statement": changed(({ record }) => (record.final = 7)),
  "an opening for a final": changed(({ record }) => (record.final = record.opening)),
  "a final among the free bets": changed(({ record }) => record.free_bets.push(record.final)),
  "a free bet of another round": changed(({ record }) => (record.free_bets = OTHER.free_bets)),
  "the final of another round": changed(({ record }) => (record.final = OTHER.final)),
  "a proof that is no text": changed((receipt) => (receipt.log_proofs = { opening: [] })),
};

for (const [name, document] of Object.entries(STRANGE)) {
  test(`what is no receipt is refused: ${name}`, async () => {
    assert.throws(() => parseSavedReceipt(document), SavedFileError);
    await assert.rejects(verifySavedReceipt(document, ROOT), SavedFileError);
  });
}

test("a kind of statement that the verifier does not know is refused as such, and is no failure", async () => {
  const strange = btoa(atob(RECEIPT.record.final).replace("vnd.rgs.round-final.v1", "vnd.rgs.round-final.v9"));
  const report = await verifySavedReceipt(changed(({ record }) => (record.final = strange)), ROOT);
  assert.equal(report.verdict, "refused");
});

// --- the log ---

const ENTRIES = FREE.lines.map((line) => utf8(envelope(line)));
const LOG = await notary(ENTRIES);
const STRANGER = await notary([...ENTRIES].reverse());

/** The index in the log of a statement of the first round. */
function indexOf(kind) {
  return FREE.lines.findIndex((line) => payload(line).kind === kind);
}

const OPENED = indexOf("round_opening");
const ENDED = indexOf("round_final");

async function logged(log_proofs, options = { policy: LOG.policy }) {
  const report = await verifySavedReceipt(changed((receipt) => (receipt.log_proofs = log_proofs)), { ...ROOT, ...options });
  return { verdict: report.verdict, ...stepOf(report, "log"), round: report.verdict };
}

test("proofs of opening and final show their place in the log, and who has seen it", async () => {
  const found = await logged({ opening: LOG.proof(OPENED), final: LOG.proof(ENDED), free_bet_1: LOG.proof(indexOf("free_bet")) });
  assert.deepEqual([found.round, found.code], ["verified", "LOG_OK"]);
  assert.equal(found.looked.index, String(OPENED));
  assert.match(found.looked.witnesses, /^w 2026-/);
  assert.equal(found.looked.witnessed, "WITNESSED");
});

test("where proofs, a proof or the policy is absent, the step says so", async () => {
  const absent = [
    [{}, undefined, /^no proof is given that the log holds the statements$/],
    [{ opening: LOG.proof(OPENED) }, undefined, /^no proof is given that the log holds round_final$/],
    [{ opening: LOG.proof(OPENED), final: LOG.proof(ENDED) }, {}, /^no policy says whom to trust/],
  ];
  for (const [proofs, options, message] of absent) {
    const found = await logged(proofs, options);
    assert.deepEqual([found.round, found.code], ["verified", "LOG_SKIPPED"]);
    assert.match(found.message, message);
  }
});

const GOOD = { opening: LOG.proof(OPENED) };
const WRONG = {
  "the proof of another entry": [{ ...GOOD, final: LOG.proof(1) }, /no statement of the round/],
  "the final of another round": [{ ...GOOD, final: LOG.proof(FREE.lines.length - 3) }, /no statement of the round/],
  "another place": [{ ...GOOD, final: LOG.proof(ENDED).replace(`index ${ENDED}`, `index ${ENDED + 1}`) }, /no statement of the round/],
  "no proof at all": [{ ...GOOD, final: "" }, /./],
  "a log of which the policy says nothing": [{ ...GOOD, final: STRANGER.proof(FREE.lines.length - 1 - ENDED) }, /has not signed/],
  "a checkpoint that nobody has seen": [{ ...GOOD, final: LOG.unseen(ENDED) }, /has not cosigned/],
};
const KNOWN_WITHOUT_POLICY = Object.entries(WRONG).slice(0, 4);

for (const [name, [proofs, message]] of Object.entries(WRONG)) {
  test(`planted: a receipt with ${name} fails`, async () => {
    const found = await logged(proofs);
    assert.deepEqual([found.round, found.code], ["failed", "LOG_FAILED"]);
    assert.match(found.message, message);
  });
}

for (const [name, [proofs]] of KNOWN_WITHOUT_POLICY) {
  test(`planted: a receipt with ${name} fails without a policy, too`, async () => {
    assert.deepEqual((await logged(proofs, {})).code, "LOG_FAILED");
  });
}

test("a policy that is none fails the step: nobody is trusted by accident", async () => {
  for (const policy of ["", "quorum none\n", LOG.policy.replace("quorum w", "quorum none")]) {
    assert.equal((await logged(GOOD, { policy })).code, "LOG_FAILED");
  }
});

// --- disputes ---

/** The files of a dispute about a round. */
function filesOf({ lines, keys }, roundId, more = {}) {
  const one = (kind) => lines.find((line) => payload(line).kind === kind && (payload(line).deal?.round_id ?? payload(line).round_id) === roundId);
  return new Map([
    ["session.jsonl", utf8(lines.map((line) => `${line}\n`).join(""))],
    ["keys.json", utf8(keys)],
    ["opening.json", utf8(envelope(one("round_opening")))],
    ["final.json", utf8(envelope(one("round_final")))],
    ...Object.entries(more).map(([name, text]) => [name, utf8(text)]),
  ]);
}

test("a dispute shows its session, its round with the free bet, and both places in the log", async () => {
  const proofs = { "opening.tlog-proof": LOG.proof(OPENED), "final.tlog-proof": LOG.proof(ENDED) };
  const report = await verifyDispute(filesOf(FREE, FIRST, proofs), { ...ROOT, policy: LOG.policy });
  assert.deepEqual([report.passed, report.session.lastLine], [true, FREE.expect]);
  assert.deepEqual([report.round.roundId, stepOf(report.round, "free_bet").verdict, stepOf(report.round, "log").code], [FIRST, "ok", "LOG_OK"]);
});

test("planted: a dispute whose proofs are of another round fails, one of another round of the session does not", async () => {
  const proofs = { "opening.tlog-proof": LOG.proof(OPENED) };
  const wrong = await verifyDispute(filesOf(FREE, SECOND, proofs), { ...ROOT, policy: LOG.policy });
  assert.deepEqual([wrong.passed, wrong.session.passed, stepOf(wrong.round, "log").code], [false, true, "LOG_FAILED"]);
  assert.equal((await verifyDispute(filesOf(FREE, SECOND), ROOT)).passed, true);
});

test("planted: a session that lacks a line fails the dispute, though its round holds", async () => {
  const { lines } = FREE;
  const cut = { ...FREE, lines: lines.filter((line) => payload(line).kind !== "participation_end") };
  const report = await verifyDispute(filesOf(cut, FIRST), ROOT);
  assert.deepEqual([report.passed, report.session.passed, report.round.verdict], [false, false, "verified"]);
});

test("files that are no dispute are refused", async () => {
  for (const name of ["session.jsonl", "keys.json", "opening.json", "final.json"]) {
    const files = filesOf(FREE, FIRST);
    files.delete(name);
    await assert.rejects(verifyDispute(files, ROOT), new RegExp(name));
  }
  const mixed = filesOf(FREE, FIRST);
  mixed.set("final.json", filesOf(FREE, SECOND).get("final.json"));
  await assert.rejects(verifyDispute(mixed, ROOT), SavedFileError);
  const foreign = filesOf(FREE, FIRST);
  const small = scenario("small");
  const round = payload(ofKind(small.lines, "round_opening")[0]).deal.round_id;
  for (const name of ["opening.json", "final.json"]) foreign.set(name, filesOf(small, round).get(name));
  await assert.rejects(verifyDispute(foreign, ROOT), /no statement of session.jsonl/);
});
