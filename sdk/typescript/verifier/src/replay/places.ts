/** Seats at a table: seat_opening and seat_final (checks 7 to 11, 14 to 19, 25 to 28). */

import { hex, utf8, type Bytes } from "../bytes.js";
import { demand } from "../checks.js";
import { stakesOf, sum } from "../game.js";
import { formatCanonical, has, objectAt, objectsAt, text, textOr, textsAt, whole, type JsonObject } from "../json.js";
import { leafHash, rootOfPath } from "../merkle.js";
import { checkCards, demandFields } from "../rounds.js";
import type { Statement } from "../statements.js";
import type { Trace } from "../trace.js";
import { grantedOf, keepPaid } from "./freebets.js";
import {
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
import { canDeal, type OpenSeat, type Session, type TableRound } from "./state.js";
import { demandWithinTable, handsAt, type Tables } from "./tables.js";
import { checkInWindows } from "./windows.js";

export class Places {
  constructor(
    private readonly tables: Tables,
    private readonly trace: Trace | undefined,
  ) {}

  /** The content of a seat_opening, which is taken as the state in any case. */
  opening(statement: Statement, session: Session): void {
    const { body, time } = statement;
    const seat = objectAt(body, "seat");
    const round = this.tables.ofDeal(text(body, "deal"));
    const isIts = round !== undefined && round.id === text(body, "round_id");
    const stakes = stakesOf(objectsAt(seat, "bets"));
    const granted = session.freeBet ? grantedOf(stakes) : 0n;
    const id = text(body, "round_id");
    const opening: OpenSeat = { statement, round: id, stakes, granted, ruleset: round?.ruleset, isGood: false };
    const was = { ...session.sums, start: session.start, debited: session.transferRound };
    session.opening = opening;
    session.tableRound = round ?? null;
    session.debits = 0n;
    keepPaid(session, id);
    session.sums.rounds = whole(body, "round_no");
    session.sums.balance = whole(body, "balance_after_minor");
    if (round?.deal) session.start = round.deal.time;
    const isNext = was.rounds === null || whole(body, "round_no") === was.rounds + 1n;
    demand(isNext, 7, `stage ${text(body, "round_no")} comes after ${was.rounds ?? 0n}`);
    demand(round?.deal !== undefined && round.deal !== null && isIts, 25, "the table_deal that it names does not stand before it");
    const ruleset = round.ruleset;
    demand(ruleset !== undefined && canDeal(round), 25, `the ruleset is not known, or cannot deal ${round.hands} hands`);
    const start = round.deal.time;
    demand(time >= start, 27, "the seat_opening is dated before the table_deal");
    this.checkRules(session, round);
    demand(start >= was.start, 7, "the start goes back");
    checkStart(session, start, sum(stakes) - granted, was.start);
    demand(session.table === null || session.table === round.table.name, 9, `the table ${round.table.name} is not the session's`);
    demand(text(seat, "session_id") === session.id, 9, "the seat is another session's");
    const no = whole(seat, "seat_no");
    demand(round.hands === 1n || no <= round.hands, 9, `seat ${no} of ${round.hands} hands`);
    checkBets(ruleset, body);
    demandWithinTable(round, objectsAt(seat, "bets"));
    demandWithinSession(session, stakes);
    checkOpeningBalance(body, stakes, was.balance, this.trace);
    opening.isGood = true;
  }

  /** Check 8: ruleset and jurisdiction of the session are the table's. */
  private checkRules(session: Session, round: TableRound): void {
    const ruleset = nameOf(objectAt(round.body, "ruleset"));
    if (session.rulesetName === "") session.rulesetName = ruleset;
    demand(session.rulesetName === ruleset, 8, "the table's ruleset is another than the session's");
    const law = session.open ? nameOf(objectAt(session.open, "jurisdiction")) : null;
    const isIts = law === null || law === nameOf(objectAt(round.body, "jurisdiction"));
    demand(isIts, 8, "the table's jurisdiction is another than the session's");
  }

  /** Check 28 of a seat_opening: the seat among the seats of its round. */
  seat(statement: Statement, path: readonly Bytes[] | null, isWhole: boolean): void {
    const { body, time } = statement;
    const round = this.tables.ofDeal(text(body, "deal"));
    if (!round) return;
    const seat = objectAt(body, "seat");
    const no = whole(seat, "seat_no");
    const box = textOr(seat, "box");
    const leaf = leafHash(utf8(formatCanonical(seat)));
    const isNew = !round.leafOf.has(no);
    const hasBox = round.boxes.has(box);
    const most = round.seats ? whole(round.seats, "seats") : round.leaves;
    round.unanswered += 1;
    round.openings.push(time);
    if (isNew) round.leafOf.set(no, leaf);
    round.boxes.add(box);
    demand(isNew, 28, `seat ${no} of the round was opened before`);
    demand(no <= most, 28, `seat ${no} of ${most}`);
    const ruleset = canDeal(round) ? round.ruleset : undefined;
    if (ruleset?.isShared === false) {
      demand(box !== "" && whole(seat, "box") <= (ruleset.maxSeats || round.leaves), 28, `box ${box || "none"} is not one of the table`);
      demand(!hasBox, 28, `box ${box} has another seat of the round`);
    } else if (ruleset) {
      demand(box === "", 28, "a box at a table where all seats share their cards");
    }
    demand(path !== null || isWhole, 28, "no path stands beside the seat_opening");
    if (path) {
      const root = rootOfPath(leaf, no - 1n, round.leaves, path);
      demand(root !== null && hex(root) === text(round.body, "seats_root"), 28, "the path does not lead to the root over the seats");
      this.trace?.("path", () => ({
        seat: formatCanonical(seat),
        path: path.map(hex).join(" "),
        seats_root: text(round.body, "seats_root"),
      }));
    }
    demand(round.final === null, 28, "the seat_opening stands behind the table_final");
  }

  /** The content of a seat_final. */
  final(statement: Statement, session: Session): void {
    const { body } = statement;
    try {
      const { opening, tableRound: round } = session;
      demand(opening !== null, 11, "its opening is missing");
      if (round) {
        const isNewest = round.table.newest === round;
        demand(isNewest, 28, "the seat_final stands behind the next table_round of its table");
      }
      const table = round?.final ?? null;
      const isIts = table !== null && text(body, "table_final") === table.hash;
      demand(!round || isIts, 27, "the table_final that it names does not stand before it, or is another round's");
      demandAnswer(opening, statement);
      demand(round !== null && table !== null && opening.ruleset !== undefined, 11, "its round is not there");
      this.fields(body, table.body, round);
      const seatNo = whole(body, "seat_no");
      const hands = handsAt(round, seatNo);
      if (has(body, "hole_cards")) {
        checkCards([["hole_cards", textsAt(body, "hole_cards"), round.cards?.hands[Number(seatNo) - 1] ?? []]]);
        this.trace?.("cards", () => ({ hole_cards: textsAt(body, "hole_cards").join(" ") }));
      }
      const shows = { dealer: false, player: !opening.ruleset.isShared };
      const due: Due = { opening, session, trace: this.trace, shows, begins: opening.statement.hash, hands };
      const stand = checkDecisions(statement, due, opening.ruleset);
      checkInWindows(round, body, stand);
      checkSettlement(statement, due, opening.ruleset, stand, text(body, "status") === "void" ? body : null);
      checkFinalBalance(statement, due, stand);
    } finally {
      takeFinal(session, body);
    }
  }

  /** The rest of check 11. */
  private fields(body: JsonObject, table: JsonObject, round: TableRound): void {
    const status = text(body, "status");
    demand(status === text(table, "status"), 11, `a ${status} seat of a ${text(table, "status")} round`);
    const shows = has(table, "deck");
    demand(round.isFinalSound || !(shows || status === "settled"), 11, "the table_final has failed a check: there are no cards to compare with");
    demandFields(body, ["outcome"], status === "settled");
    demandFields(body, ["hole_cards"], shows && round.ruleset?.isShared === false);
    demandFields(body, ["would_have_been", "would_have_outcome"], status === "void" && shows);
  }
}
