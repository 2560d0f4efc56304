/** Rounds of solo play, and of seats that share one deal: round_opening and round_final (checks 7 to 19). */

import { hex, unhex, utf8 } from "../bytes.js";
import { cardsDealt, dealt } from "../cards.js";
import { demand, Fault } from "../checks.js";
import { handsOf, stakesOf, sum, type Hands } from "../game.js";
import { formatCanonical, has, objectAt, objectsAt, text, textsAt, whole } from "../json.js";
import type { JsonObject } from "../json.js";
import { leafHash, rootOfPath } from "../merkle.js";
import { checkAllCards, checkCommitment, checkTranscript, demandFields, UNRECOVERABLE, voidReason } from "../rounds.js";
import type { Rulebook, Ruleset } from "../rules.js";
import { at, type Statement } from "../statements.js";
import type { Looked, Trace } from "../trace.js";
import { grantedOf, keepPaid } from "./freebets.js";
import {
  checkApprovals,
  checkBets,
  checkDecisions,
  checkFinalBalance,
  checkOpeningBalance,
  checkSettlement,
  checkStart,
  demandAnswer,
  demandWithinSession,
  takeFinal,
  type Due,
} from "./seats.js";
import { nameOf } from "./sessions.js";
import type { PaidRound, Session } from "./state.js";

const SHUFFLE = "fisher-yates-52/v1";
const SEATS_MAX = 256n;
const REVEALED = ["salt", "transcript", "deck", "cards"];

export { SHUFFLE };

/** The game code of a start, and whether it is new in its second. */
export function demandCode(code: string, start: number, last: number, codes: Set<string>, check: 9 | 25): void {
  const second = new Date(start).toISOString().slice(11, 19);
  demand(code.split("-")[0] === `#${second}`, check, `the game code ${code} is not that of ${second}`);
  const isSame = Math.floor(start / 1000) === Math.floor(last / 1000);
  demand(!isSame || !codes.has(code), check, `the game code ${code} is another round's of this second`);
}

/** Keeps the codes of the newest second. */
export function takeCode(code: string, start: number, last: number, codes: Set<string>): Set<string> {
  const isSame = Math.floor(start / 1000) === Math.floor(last / 1000);
  return isSame ? codes.add(code) : new Set([code]);
}

export class Solo {
  constructor(
    private readonly rulebook: Rulebook,
    private readonly trace: Trace | undefined,
  ) {}

  /** The content of a round_opening. Takes the state in any case. */
  opening(statement: Statement, session: Session): void {
    const { body } = statement;
    const deal = objectAt(body, "deal");
    const ruleset = this.rulebook.ruleset(objectAt(deal, "ruleset"));
    const stakes = stakesOf(objectsAt(objectAt(body, "seat"), "bets"));
    const paid = session.freeBet;
    const granted = paid ? grantedOf(stakes) : 0n;
    const opening = { statement, round: text(deal, "round_id"), stakes, granted, ruleset, isGood: false };
    const campaign = campaignOf(session, paid);
    const was = { ...session.sums, start: session.start, codes: session.codes, debited: session.transferRound };
    const start = at(deal, "start_time");
    session.opening = opening;
    session.debits = 0n;
    keepPaid(session, opening.round);
    session.sums.rounds = whole(body, "round_no");
    session.sums.balance = whole(body, "balance_after_minor");
    session.start = start;
    session.codes = takeCode(text(deal, "game_code"), start, was.start, new Set(was.codes));
    const isNext = was.rounds === null || whole(body, "round_no") === was.rounds + 1n;
    demand(isNext, 7, `stage ${text(body, "round_no")} comes after ${was.rounds ?? 0n}`);
    demand(start >= was.start, 7, "the start goes back");
    const isDebited = session.isSeamless !== true || was.debited === "" || was.debited === opening.round;
    demand(isDebited, 7, "the debit before it was for another round");
    demand(!paid || paid.round === opening.round, 7, "the free bet before it was for another round");
    demand(ruleset !== undefined, 8, `the ruleset ${nameOf(objectAt(deal, "ruleset"))} is not known`);
    if (session.rulesetName === "") session.rulesetName = nameOf(objectAt(deal, "ruleset"));
    const isSessions = nameOf(objectAt(deal, "ruleset")) === session.rulesetName;
    demand(isSessions, 8, "the deal names another ruleset than the session");
    demand(!paid || start < paid.expires, 8, `started at ${text(deal, "start_time")}, when the free bet had expired`);
    checkStart(session, start, sum(stakes) - granted, was.start);
    this.trace?.("rules", () => ({ ruleset: ruleset.id, version: ruleset.version, sha256: ruleset.sha256 }));
    this.deal(statement, session, ruleset, { start: was.start, codes: was.codes });
    checkBets(ruleset, body);
    demandWithinSession(session, stakes);
    demand(!paid || granted === paid.amount, 18, `the free bet paid ${paid?.amount ?? 0n}, ante and blind are ${granted}`);
    checkOpeningBalance(body, stakes, was.balance, this.trace, campaign);
    opening.isGood = true;
  }

  /** Check 9 of one seat. */
  private deal(statement: Statement, session: Session, ruleset: Ruleset, was: { start: number; codes: Set<string> }): void {
    const { body, time } = statement;
    const [deal, seat] = [objectAt(body, "deal"), objectAt(body, "seat")];
    const start = at(deal, "start_time");
    demand(text(deal, "instance") === text(body, "instance"), 9, `dealt by ${text(deal, "instance")}, which does not sign`);
    demand(text(deal, "shuffle") === SHUFFLE, 9, `the shuffle ${text(deal, "shuffle")} is not ${SHUFFLE}`);
    demand(start <= time, 9, `starts at ${text(deal, "start_time")}, after its opening`);
    demandCode(text(deal, "game_code"), start, was.start, was.codes, 9);
    const table = text(deal, "table");
    demand(session.table === null || table === session.table, 9, `the table ${table || "none"} is not the session's`);
    const most = table === "" ? 1n : ruleset.maxSeats || SEATS_MAX;
    const seats = whole(deal, "seats");
    demand(seats <= most, 9, `${seats} seats where at most ${most} may be dealt`);
    demand(text(seat, "session_id") === session.id, 9, "the seat is another session's");
    checkPath(seat, textsAt(body, "path"), seats, text(deal, "seats_root"), 9, this.trace);
  }

  /** The content of a round_final. */
  final(statement: Statement, session: Session): void {
    const { body } = statement;
    try {
      const { opening } = session;
      demand(opening !== null, 11, "its opening is missing");
      demandAnswer(opening, statement);
      const ruleset = opening.ruleset;
      if (!ruleset) throw new Fault(11, "the ruleset of its opening is not known");
      const reason = this.fields(body);
      const hands = this.dealt(body, opening.statement.body, ruleset);
      const named = opening.statement.body;
      const shows = { dealer: true, player: true };
      const due: Due = { opening, session, trace: this.trace, shows, begins: text(named, "commitment"), hands };
      const stand = checkDecisions(statement, due, ruleset);
      if (reason) checkApprovals(statement);
      checkSettlement(statement, due, ruleset, stand, reason ? objectAt(body, "void") : null);
      checkFinalBalance(statement, due, stand);
    } finally {
      takeFinal(session, body);
    }
  }

  /** Check 11: which fields a final has; the reason of its void, "" where it is none. */
  private fields(body: JsonObject): string {
    const reason = voidReason(body);
    const isVoid = text(body, "status") === "void";
    demand(isVoid === has(body, "void"), 11, `void is ${isVoid ? "missing" : "there"} in a ${text(body, "status")} final`);
    demandFields(body, ["outcome"], !isVoid);
    demandFields(body, REVEALED, reason !== UNRECOVERABLE);
    if (reason !== UNRECOVERABLE) demandFields(body, ["settlement"], true);
    return reason;
  }

  /** Checks 12 to 14; null where no deck is shown. */
  private dealt(body: JsonObject, opening: JsonObject, ruleset: Ruleset): Hands | null {
    if (!has(body, "deck")) return null;
    const deal = objectAt(opening, "deal");
    checkCommitment(deal, text(opening, "commitment"), body, this.trace);
    const deck = checkTranscript(body, this.trace);
    const count = ruleset.isShared ? 1 : Number(whole(deal, "seats"));
    demand(cardsDealt(ruleset, count) <= deck.length, 14, `${count} hands take more cards than a deck has`);
    const cards = dealt(ruleset, deck, count);
    const hand = ruleset.isShared ? 0 : Number(whole(objectAt(opening, "seat"), "seat_no")) - 1;
    checkAllCards(objectAt(body, "cards"), cards, hand, this.trace);
    return handsOf(ruleset, cards, hand);
  }
}

/** What is seen of a campaign that pays for a round: nothing, where the link before its opening is not at hand. */
function campaignOf(session: Session, paid: PaidRound | null): Looked {
  if (paid) return { free_bet: paid.grant, granted_minor: String(paid.amount) };
  const isExcluded = session.isSeamless === true || session.isDemo === true || session.jurisdiction?.allowsFreeBets === false;
  if (isExcluded || session.stageBefore !== "") return {};
  return { free_bet: "not shown: no free_bet statement is given, so whether a campaign paid ante and blind is open" };
}

/** The path from the leaf of a seat to the root over the seats: check 9, or 28 at a table. */
export function checkPath(
  seat: JsonObject,
  path: readonly string[],
  leaves: bigint,
  root: string,
  check: 9 | 28,
  trace: Trace | undefined,
): void {
  const leaf = leafHash(utf8(formatCanonical(seat)));
  const found = rootOfPath(leaf, whole(seat, "seat_no") - 1n, leaves, path.map(unhex));
  demand(found !== null && hex(found) === root, check, `the path of seat ${text(seat, "seat_no")} does not lead to the root over the seats`);
  trace?.("path", () => ({ seat: formatCanonical(seat), path: path.join(" "), seats_root: root }));
}
