/** A seat's opening and final, alone or at a table: what both have in common (checks 8, 10, 11, 15 to 19). */

import { unhex } from "../bytes.js";
import { demand, Fault } from "../checks.js";
import { byDefault, checkStakes, pushed, settle, stakesOf, sum } from "../game.js";
import type { Hands, Stake, Stand } from "../game.js";
import { has, objectAt, objectsAt, text, whole, type Json, type JsonObject } from "../json.js";
import { checkActions, checkHands, checkRows, outcomeJson, returnedOf, rowsShown, stakedOf } from "../rounds.js";
import type { Ruleset } from "../rules.js";
import { at, type Statement } from "../statements.js";
import type { Looked, Trace } from "../trace.js";
import { grantedOf, reclaimedOf } from "./freebets.js";
import { openedAt } from "./sessions.js";
import type { OpenSeat, Session } from "./state.js";

/** Check 8 of a start: the jurisdiction's interval, and the session's own limits. `staked` is the player's own. */
export function checkStart(session: Session, start: number, staked: bigint, previous: number): void {
  const law = session.jurisdiction;
  const isPaced = !law || previous === 0 || start - previous >= law.startInterval;
  demand(isPaced, 8, `started ${start - previous} ms after the round before, ${law?.id ?? ""} asks for ${law?.startInterval ?? 0}`);
  if (!session.open || !has(session.open, "limits")) return;
  const limits = objectAt(session.open, "limits");
  const opened = openedAt(session) ?? 0;
  const inTime = !has(limits, "duration_ms") || BigInt(start - opened) < whole(limits, "duration_ms");
  demand(inTime, 8, "started when the time that the session is limited to was up");
  const left = limitLeft(session);
  demand(left === null || staked <= left, 8, `staked ${staked} where the session's limits leave ${left ?? 0n}`);
}

/** What the session's limits leave to stake; null where they bind nothing, or the sums are not known. */
export function limitLeft(session: Session): bigint | null {
  if (!session.open || !has(session.open, "limits")) return null;
  const limits = objectAt(session.open, "limits");
  const { staked, returned } = session.sums;
  if (staked === null || returned === null) return null;
  const found = [
    ...(has(limits, "loss_minor") ? [whole(limits, "loss_minor") + returned - staked] : []),
    ...(has(limits, "stake_minor") ? [whole(limits, "stake_minor") - staked] : []),
  ];
  if (!found.length) return null;
  const least = found.reduce((low, one) => (one < low ? one : low));
  return least > 0n ? least : 0n;
}

/** Check 18 of an opening. `before` is what the links leave. */
export function checkOpeningBalance(
  body: JsonObject,
  stakes: readonly Stake[],
  before: bigint | null,
  trace?: Trace,
  campaign: Looked = {},
): void {
  const [shown, after] = [whole(body, "balance_before_minor"), whole(body, "balance_after_minor")];
  demand(before === null || shown === before, 18, `balance ${shown} before, the links leave ${before ?? 0n}`);
  demand(after === shown - sum(stakes), 18, `${shown} - ${sum(stakes)} is not ${after}`);
  trace?.("stakes", () => ({
    bets: stakes.map(({ bet, amount }) => `${bet} ${amount}`).join(" "),
    balance_before_minor: String(shown),
    balance_after_minor: String(after),
    ...campaign,
  }));
}

/** Check 10 of an opening: the ruleset's bets. */
export function checkBets(ruleset: Ruleset, body: JsonObject): void {
  checkStakes(ruleset, stakesOf(objectsAt(objectAt(body, "seat"), "bets")));
}

/** Check 10: the bets are within the limits of the session_open. */
export function demandWithinSession({ betLimits }: Session, stakes: readonly Stake[]): void {
  for (const { bet, amount } of stakes) {
    const limit = betLimits.get(bet);
    const isWithin = !limit || (amount >= limit.min && amount <= limit.max);
    demand(isWithin, 10, `${bet} ${amount} is not within ${limit?.min ?? 0n} to ${limit?.max ?? 0n}, the session's limits`);
  }
}

/** What a final is due to show, besides its own fields. */
export interface Due {
  readonly opening: OpenSeat;
  readonly session: Session;
  readonly trace: Trace | undefined;
  /** Which hands the outcome shows: those of the dealer, too, where no table_final does. */
  readonly shows: { readonly dealer: boolean; readonly player: boolean };
  /** The running hash begins with it. */
  readonly begins: string;
  /** The hands that were dealt; null where no deck is shown. */
  readonly hands: Hands | null;
}

/** Check 11: the final answers this opening, which has failed none of its checks. */
export function demandAnswer(opening: OpenSeat, { body }: Statement): void {
  const named = opening.statement.body;
  const seat = objectAt(named, "seat");
  demand(text(body, "round_id") === opening.round, 11, `round_id is ${text(body, "round_id")}, not ${opening.round}`);
  demand(text(body, "seat_no") === text(seat, "seat_no"), 11, `seat_no is ${text(body, "seat_no")}, not ${text(seat, "seat_no")}`);
  demand(text(body, "round_no") === text(named, "round_no"), 11, `round_no is ${text(body, "round_no")}, not ${text(named, "round_no")}`);
  demand(text(body, "opening") === opening.statement.hash, 11, "opening is not the hash of the open opening");
  demand(opening.isGood, 11, "its opening has failed a check");
}

/** Check 15. */
export function checkDecisions(final: Statement, due: Due, ruleset: Ruleset): Stand {
  const { opening, session, trace } = due;
  const { statement, stakes, granted } = opening;
  const limit = limitLeft(session);
  const byLimit = limit === null ? null : limit - sum(stakes) + granted;
  const balance = session.isSeamless === true ? null : whole(statement.body, "balance_after_minor");
  const left = balance === null ? byLimit : byLimit === null || balance < byLimit ? balance : byLimit;
  const operator = session.open ? text(session.open, "operator") : null;
  const deciding = { ruleset, stakes, operator, begins: unhex(due.begins), from: statement.time, left };
  return checkActions(deciding, final.body, trace);
}

/** Checks 19 (the pushes), 16 and 17. `would` holds what would have been: the void's, or the final itself. */
export function checkSettlement(final: Statement, due: Due, ruleset: Ruleset, stand: Stand, would: JsonObject | null): void {
  const { body } = final;
  const { opening, hands, trace, shows } = due;
  if (would === null) {
    if (!hands) throw new Fault(11, "a settled final without cards");
    checkHands(body["outcome"], outcomeJson(hands, stand, shows), "outcome");
    trace?.("hands", () => handsShown(objectAt(body, "outcome")));
    checkRows(body, "settlement", settle(ruleset, opening.stakes, stand, hands), 17);
    trace?.("settlement", () => rowsShown(body, "settlement"));
    return;
  }
  if (has(body, "settlement")) checkRows(body, "settlement", pushed(opening.stakes, stand.play), 19);
  for (const key of ["would_have_been", "would_have_outcome"]) {
    demand(has(would, key) === (hands !== null), 19, `${key} is ${hands ? "missing" : "claimed without a deck"}`);
  }
  trace?.("void", () => ({ ...(has(body, "settlement") ? rowsShown(body, "settlement") : {}) }));
  if (!hands) return;
  const end = byDefault(ruleset, stand);
  checkHands(would["would_have_outcome"], outcomeJson(hands, end, shows), "would_have_outcome");
  checkRows(would, "would_have_been", settle(ruleset, opening.stakes, end, hands), 17);
}

function handsShown(outcome: JsonObject): { [name: string]: string } {
  const found: { [name: string]: string } = { outcome: text(outcome, "outcome") };
  for (const key of ["player_hand", "dealer_hand", "flop_hand"]) {
    if (!has(outcome, key)) continue;
    const hand = objectAt(outcome, key);
    found[key] = `${text(hand, "category")} ${(hand["best5"] as readonly Json[]).join(" ")}`;
  }
  return found;
}

/** Check 18 of a final. */
export function checkFinalBalance(final: Statement, due: Due, stand: Stand): void {
  const { body } = final;
  const { opening, session, trace } = due;
  const [before, after] = [whole(body, "balance_before_minor"), whole(body, "balance_after_minor")];
  const [staked, returned] = [whole(body, "staked_minor"), whole(body, "returned_minor")];
  const opened = whole(opening.statement.body, "balance_before_minor") + (session.debits ?? 0n);
  const isKnown = session.debits !== null;
  demand(!isKnown || before === opened, 18, `balance ${before} before, opening and transfers come to ${opened}`);
  demand(staked === stakedOf(opening.stakes, stand), 18, `staked ${staked}, the bets come to ${stakedOf(opening.stakes, stand)}`);
  demand(returned === returnedOf(body, staked), 18, `returned ${returned}, the rows come to ${returnedOf(body, staked)}`);
  demand(after === before - staked + returned, 18, `${before} - ${staked} + ${returned} is not ${after}`);
  const isDebited = session.isSeamless === true && final.kind.name === "round_final"; // no seat at a table is
  demand(!isDebited || before === staked, 18, `${before} was debited, ${staked} is staked`);
  trace?.("balance", () => ({
    balance_before_minor: String(before),
    staked_minor: String(staked),
    returned_minor: String(returned),
    balance_after_minor: String(after),
  }));
}

/** Takes what a final says as the session's state. What a free bet paid, and what of it came back, is not the player's. */
export function takeFinal(session: Session, body: JsonObject): void {
  const { sums, freeBet: paid, opening } = session;
  const granted = paid ? paid.amount : opening ? grantedOf(opening.stakes) : null;
  const back = paid || session.unseenRound !== "" ? reclaimedOf(body, granted) : session.reclaimed;
  session.reclaimed = back;
  sums.balance = whole(body, "balance_after_minor");
  if (sums.staked !== null) sums.staked += whole(body, "staked_minor") - (paid?.amount ?? 0n);
  if (sums.returned !== null) sums.returned += whole(body, "returned_minor") - (paid?.amount ? back ?? 0n : 0n);
  session.opening = null;
  session.tableRound = null;
  session.debits = 0n;
  session.transferRound = text(body, "round_id");
}

/** Check 19 of a void by itself: two approvals of different parties, neither later than the final. */
export function checkApprovals(final: Statement): void {
  const approvals = objectsAt(objectAt(final.body, "void"), "approvals");
  const parties = new Set(approvals.map((one) => text(one, "party")));
  demand(approvals.length === 2 && parties.size === 2, 19, "a void needs the approvals of two different parties");
  for (const one of approvals) {
    demand(at(one, "time") <= final.time, 19, `approved by ${text(one, "party")} after the void`);
  }
}

