/** Free bets: what a campaign pays for a round, and what goes back to it (checks 7, 8, 18). */

import { demand } from "../checks.js";
import type { Stake } from "../game.js";
import { has, objectAt, objectsAt, text, whole, type JsonObject } from "../json.js";
import { at, type Statement } from "../statements.js";
import type { PaidRound, Session } from "./state.js";

/** The bets that a free bet pays. */
const GRANTED: ReadonlySet<string> = new Set(["ante", "blind"]);

export function freeBetStage(body: JsonObject): string {
  return isDebit(body) ? "free_bet before" : "free_bet behind";
}

/** Whether a free_bet pays for a round; else it is the return behind one. */
export function isDebit(body: JsonObject): boolean {
  return text(body, "direction") === "debit";
}

/** What a free bet pays of these opening bets. */
export function grantedOf(stakes: readonly Stake[]): bigint {
  return stakes.reduce((total, { bet, amount }) => (GRANTED.has(bet) ? total + amount : total), 0n);
}

/** What of it a final owes to the campaign: the stakes that came back; of a void without rows all that was `granted`. */
export function reclaimedOf(final: JsonObject, granted: bigint | null): bigint | null {
  if (!has(final, "settlement")) return granted;
  const rows = objectsAt(final, "settlement").filter((row) => GRANTED.has(text(row, "bet")) && text(row, "result") !== "lose");
  return rows.reduce((total, row) => total + whole(row, "stake_minor"), 0n);
}

/**
 * The round of an opening or final whose link before it is not in the files, so that a free bet may have paid for it; ""
 * of every other link. `isBehindGap`: links are missing right before this one.
 */
export function unseenRound({ kind, body }: Statement, session: Session, isBehindGap: boolean): string {
  if (kind.name === "round_opening") return isBehindGap ? text(objectAt(body, "deal"), "round_id") : "";
  if (kind.name !== "round_final") return "";
  const round = text(body, "round_id");
  const isItsOpening = session.opening?.statement.hash === text(body, "opening");
  const isUnseen = isItsOpening ? !isBehindGap && session.unseenRound === round : isBehindGap;
  return isUnseen ? round : "";
}

/** A link of another round ends what a free bet's debit began. */
export function keepPaid(session: Session, round: string): void {
  if (session.freeBet?.round !== round) session.freeBet = null;
}

/** The content of a free_bet, which is taken as the state in any case. */
export function takeFreeBet({ body }: Statement, session: Session): void {
  const { freeBet: paid, jurisdiction: law, sums } = session;
  const [amount, grant, round] = [whole(body, "amount_minor"), text(body, "grant_id"), text(body, "round_id")];
  const pays = isDebit(body);
  const expires = has(body, "expiry_time") ? at(body, "expiry_time") : -Infinity;
  session.freeBet = pays ? { grant, round, amount, expires } : null;
  if (sums.balance !== null) sums.balance = pays ? sums.balance + amount : sums.balance > amount ? sums.balance - amount : 0n;
  for (const key of ["campaign", "expiry_time"]) {
    demand(has(body, key) === pays, 7, `${key} is ${pays ? "missing in the debit" : "there in the return"} of a free bet`);
  }
  if (!pays) demandItsRound(session, paid, { grant, round });
  if (pays || !paid) {
    demand(!law || law.allowsFreeBets, 8, `${law?.id ?? ""} version ${law?.version ?? ""} does not allow free bets`);
    demand(session.isDemo !== true, 8, "a free bet in a session with play money");
  }
  if (pays) return demand(amount > 0n, 18, "a free bet of nothing");
  const due = session.stageBefore === "" ? null : session.reclaimed;
  demand(due === null || amount === due, 18, `${amount} goes back to the campaign, ${due ?? 0n} of its stakes came back`);
}

/** Check 7 of a return: it is that of the free bet that paid for the round before it, as far as the files show who paid. */
function demandItsRound(session: Session, paid: PaidRound | null, its: { readonly grant: string; readonly round: string }): void {
  if (paid) {
    const isIts = its.grant === paid.grant && its.round === paid.round;
    return demand(isIts, 7, `the return is not that of the free bet ${paid.grant} in the round ${paid.round}`);
  }
  if (session.stageBefore === "") return;
  const isBehindFinal = session.stageBefore === "round_final";
  demand(isBehindFinal && session.unseenRoundBefore !== "", 7, "the return of a free bet that paid for no round");
  demand(its.round === session.unseenRoundBefore, 7, `the return is not that of the round ${session.unseenRoundBefore}`);
}
