/** The rounds of tables that players share: table_round, table_seats, table_deal, table_final (checks 24 to 28). */

import { hex, unhex, type Bytes } from "../bytes.js";
import { dealt } from "../cards.js";
import { demand, Fault } from "../checks.js";
import { handsOf, type Hands } from "../game.js";
import { equal, has, objectAt, objectsAt, text, textsAt, whole, type JsonObject } from "../json.js";
import { rootOf } from "../merkle.js";
import { checkCards, checkCommitment, checkHands, checkTranscript, demandFields, handsJson, shownCards } from "../rounds.js";
import { UNRECOVERABLE, voidReason } from "../rounds.js";
import type { Rulebook } from "../rules.js";
import { tagged } from "../sha2.js";
import { at, type Statement } from "../statements.js";
import type { Trace } from "../trace.js";
import { checkApprovals } from "./seats.js";
import { ZEROS } from "./sessions.js";
import { demandCode, SHUFFLE, takeCode } from "./solo.js";
import { canDeal, type Table, type TableRound } from "./state.js";
import { checkBetting, checkWindows } from "./windows.js";

const LEAVES_MIN = 64n;
const LEAVES_MAX = 1048576n;

export class Tables {
  private readonly tables = new Map<string, Table>();
  /** Rounds that are kept, by the hash of their table_round; and by those of their table_deal. */
  private readonly rounds = new Map<string, TableRound>();
  private readonly deals = new Map<string, TableRound>();

  constructor(
    private readonly rulebook: Rulebook,
    private readonly trace: Trace | undefined,
  ) {}

  /** The newest round of the table that a table_round names. */
  newestOf(statement: Statement): TableRound | null {
    return this.tables.get(text(statement.body, "table"))?.newest ?? null;
  }

  ofDeal(hash: string): TableRound | undefined {
    return this.deals.get(hash);
  }

  forget(round: TableRound): void {
    const { hash } = round.statement;
    if (this.rounds.get(hash) === round) this.rounds.delete(hash); // the same table_round may have come again
    if (round.deal && this.deals.get(round.deal.hash) === round) this.deals.delete(round.deal.hash);
  }

  all(): Iterable<TableRound> {
    return [...this.rounds.values()];
  }

  /** The round to which a statement belongs: to none, if it names another round_id. */
  private named(hash: string, body: JsonObject): TableRound {
    const round = this.rounds.get(hash);
    demand(round !== undefined, 24, "the table_round that it names does not stand before it");
    demand(round.id === text(body, "round_id"), 24, `round_id is ${text(body, "round_id")}, that of the table_round is ${round.id}`);
    return round;
  }

  // --- table_round ---

  begin(statement: Statement, isWhole: boolean): void {
    const { body } = statement;
    const name = text(body, "table");
    const blank = { name, no: 0n, final: ZEROS, finalTime: 0, codes: new Set<string>(), codeTime: 0, newest: null };
    const table: Table = this.tables.get(name) ?? blank;
    this.tables.set(name, table);
    const was = { ...table, codes: new Set(table.codes) };
    const [ruleset, law] = [objectAt(body, "ruleset"), objectAt(body, "jurisdiction")];
    const round: TableRound = {
      ...{ statement, body, id: text(body, "round_id"), table },
      ...{ ruleset: this.rulebook.ruleset(ruleset), law: this.rulebook.jurisdiction(law) },
      ...{ hands: whole(body, "hands"), leaves: whole(body, "leaves"), seats: null, deal: null, final: null },
      ...{ cards: null, isFinalSound: false, isEndSound: false, leafOf: new Map<bigint, Bytes>(), boxes: new Set<string>() },
      ...{ openings: [], unanswered: 0, isCut: false },
    };
    const no = whole(body, "table_round_no");
    const opens = at(body, "betting_open_time");
    const code = text(body, "game_code");
    if (no > table.no) table.no = no;
    table.newest = round;
    table.codes = takeCode(code, opens, was.codeTime, table.codes);
    table.codeTime = opens;
    this.rounds.set(statement.hash, round);
    this.checkOrder(body, was, isWhole);
    this.checkRules(round);
    this.checkLimits(round);
    this.checkDeal(round, code);
    checkBetting(body);
    demand(statement.time >= at(body, "betting_close_time"), 27, "the table_round is dated before its betting closes");
    demandCode(code, opens, was.codeTime, was.codes, 25);
    const known = round.ruleset;
    if (known) this.trace?.("rules", () => ({ ruleset: known.id, version: known.version, sha256: known.sha256 }));
  }

  /** Check 24 of a table_round. */
  private checkOrder(body: JsonObject, was: Table, isWhole: boolean): void {
    const no = whole(body, "table_round_no");
    const before = was.newest;
    const hasEnded = before === null || before.final !== null;
    demand(no > was.no, 24, `the table's round ${no} comes after ${was.no}: two of one number, or out of order`);
    const isNext = no === was.no + 1n;
    if (isWhole) {
      demand(isNext, 24, `the table's round ${no} comes after ${was.no}: ${no - was.no - 1n} missing`);
      demand(hasEnded, 24, "the round before it has not ended");
    }
    const isComparable = isNext && hasEnded;
    demand(!isComparable || text(body, "previous") === was.final, 24, "previous is not the newest table_final of the table");
    const opens = at(body, "betting_open_time");
    demand(opens >= was.finalTime, 24, "betting opens before the time of the newest table_final");
  }

  private checkRules({ body, ruleset, law }: TableRound): void {
    demand(ruleset !== undefined, 8, `the ruleset ${text(objectAt(body, "ruleset"), "id")} is not known`);
    demand(law !== undefined, 8, `the jurisdiction ${text(objectAt(body, "jurisdiction"), "id")} is not known`);
    demand(ruleset.isTableOnly, 8, `${ruleset.id} is not played at tables`);
    demand(law.tablesMax > 0, 8, `${law.id} version ${law.version} does not allow tables`);
    demand(body["early_close"] === false || law.allowsEarlyClose, 8, `${law.id} does not allow windows to close early`);
  }

  /** Check 10 of a table_round: each bet that players place, once, in the order of names, within the ruleset's limits. */
  private checkLimits({ body, ruleset }: TableRound): void {
    const limits = objectsAt(body, "limits");
    const names = limits.map((one) => text(one, "bet")).join(" ");
    const due = [...ruleset!.limits.keys()].sort().join(" ");
    demand(names === due, 10, `limits are those of ${names}, players place ${due}`);
    for (const one of limits) {
      const [bet, min, max] = [text(one, "bet"), whole(one, "min_minor"), whole(one, "max_minor")];
      const within = ruleset!.limits.get(bet)!;
      demand(min <= max && min >= within.min && max <= within.max, 10, `the limits of ${bet} are outside of the ruleset's`);
    }
  }

  private checkDeal({ body, ruleset, hands, leaves }: TableRound, code: string): void {
    const most = ruleset!.isShared ? 1n : ruleset!.maxSeats;
    const isRight = ruleset!.isShared ? hands === 1n : most === 0n || hands <= most;
    demand(isRight, 25, `${hands} hands where ${most} may be dealt`);
    demand(isPowerOfTwo(leaves) && leaves >= LEAVES_MIN && leaves <= LEAVES_MAX, 25, `${leaves} leaves are no tree of seats`);
    demandCode(code, at(body, "betting_open_time"), 0, new Set(), 25);
  }

  // --- table_seats ---

  takeSeats({ body }: Statement): void {
    const round = this.named(text(body, "table_round"), body);
    const isFirst = round.seats === null;
    const stands = round.deal === null && round.final === null;
    if (isFirst) round.seats = body;
    demand(isFirst, 28, "the round has a table_seats already");
    demand(stands, 28, "the table_seats stands behind the draw, or the end of the round");
    const seats = whole(body, "seats");
    const ruleset = canDeal(round) ? round.ruleset : undefined;
    const most = ruleset?.maxSeats || LEAVES_MAX;
    demand(seats <= most, 28, `${seats} seats where at most ${most} may play`);
    demand(round.leaves === leavesFor(seats), 28, `${seats} seats need ${leavesFor(seats)} leaves, the round has ${round.leaves}`);
    demand(ruleset?.isShared !== false || seats === round.hands, 28, `${seats} seats, ${round.hands} hands are dealt`);
  }

  // --- table_deal ---

  takeDeal(statement: Statement, isWhole: boolean): void {
    const { body } = statement;
    const deal = objectAt(body, "deal");
    const round = this.named(text(deal, "table_round"), body);
    const [isFirst, hasEnded] = [round.deal === null, round.final !== null];
    if (isFirst) {
      round.deal = statement;
      this.deals.set(statement.hash, round);
    }
    demand(isFirst, 25, "the round was dealt before");
    demand(!hasEnded, 25, "the round has ended before it is dealt");
    demand(text(deal, "instance") === text(body, "instance"), 25, `dealt by ${text(deal, "instance")}, which does not sign`);
    demand(text(deal, "shuffle") === SHUFFLE, 25, `the shuffle ${text(deal, "shuffle")} is not ${SHUFFLE}`);
    demand(!isWhole || round.seats !== null, 28, "no table_seats stands before the draw");
    demand(statement.time >= at(round.body, "betting_close_time"), 27, "the draw is dated before the betting closes");
  }

  // --- table_final ---

  /** Takes a table_final; the round that it ends, null where it ends none. */
  end(statement: Statement, isWhole: boolean): void {
    const { body } = statement;
    const round = this.named(text(body, "table_round"), body);
    const isFirst = round.final === null;
    if (!isFirst) throw new Fault(24, "the round has ended before");
    round.final = statement;
    round.table.final = statement.hash;
    round.table.finalTime = statement.time;
    const isVoid = this.checkFields(round, body);
    this.checkShown(round, body);
    round.isFinalSound = true;
    checkWindows(round, body, this.trace);
    this.checkDates(round, statement);
    this.checkSeats(round, isWhole);
    if (isVoid) checkApprovals(statement);
    round.isEndSound = true;
  }

  /** The round that a table_final ends. */
  roundOf(statement: Statement): TableRound | null {
    const round = this.rounds.get(text(statement.body, "table_round"));
    return round?.final === statement ? round : null;
  }

  private checkFields(round: TableRound, body: JsonObject): boolean {
    const reason = voidReason(body);
    const isVoid = text(body, "status") === "void";
    demand(isVoid === has(body, "void"), 11, `void is ${isVoid ? "missing" : "there"} in a ${text(body, "status")} table_final`);
    demand(has(body, "deal") === (round.deal !== null), 11, "deal is there exactly where the round was dealt");
    demand(!round.deal || text(body, "deal") === round.deal.hash, 11, "deal is not the hash of the round's table_deal");
    demand(isVoid || round.deal !== null, 11, "a settled round that was not dealt");
    const shows = round.deal !== null && reason !== UNRECOVERABLE;
    demandFields(body, ["salt", "transcript", "deck", "cards", "hands"], shows);
    return isVoid;
  }

  /** Checks 12 to 16 of what all seats share. */
  private checkShown(round: TableRound, body: JsonObject): void {
    if (!has(body, "deck") || !round.deal) return;
    const { ruleset } = round;
    const dealBody = round.deal.body;
    checkCommitment(objectAt(dealBody, "deal"), text(dealBody, "commitment"), body, this.trace);
    const deck = checkTranscript(body, this.trace);
    if (!canDeal(round) || !ruleset) return;
    const found = dealt(ruleset, deck, Number(round.hands));
    const cards = objectAt(body, "cards");
    demand(has(cards, "hole_cards") === ruleset.isShared, 14, "hole_cards stand in a table_final exactly where all seats share them");
    checkCards([
      ...(ruleset.isShared ? [["hole_cards", textsAt(cards, "hole_cards"), found.hands[0]!] as const] : []),
      ["dealer_cards", textsAt(cards, "dealer_cards"), found.dealer],
      ["board", textsAt(cards, "board"), found.board],
      ["burns", textsAt(cards, "burns"), found.burns],
    ]);
    this.trace?.("cards", () => shownCards(found, ruleset.isShared ? found.hands[0]! : []));
    const due = handsJson(handsOf(ruleset, found, 0), { dealer: true, player: ruleset.isShared });
    checkHands(body["hands"], due, "hands");
    round.cards = found;
  }

  /** Check 27 of a table_final. */
  private checkDates(round: TableRound, { body, time }: Statement): void {
    const windows = objectsAt(body, "windows");
    const last = windows[windows.length - 1];
    const earliest = last ? at(last, "close_time") : (round.deal?.time ?? 0);
    demand(time >= earliest, 27, "the table_final is dated before its last window closed, or the draw");
    const opens = windows[0] ? at(windows[0], "open_time") : Infinity;
    demand(round.openings.every((one) => one <= opens), 27, "a seat_opening is dated after the first window opened");
  }

  /** Check 28 at the table_final. */
  private checkSeats(round: TableRound, isWhole: boolean): void {
    demand(!isWhole || round.deal !== null || round.seats !== null, 28, "the round has no table_seats");
    if (!round.deal || !round.seats) return;
    const seats = whole(round.seats, "seats");
    const isAll = BigInt(round.leafOf.size) === seats;
    demand(!isWhole || isAll, 28, `${seats} seats were dealt, ${round.leafOf.size} opened`);
    if (!isAll || round.leaves !== leavesFor(seats) || seats > LEAVES_MAX) return;
    const salt = unhex(text(round.seats, "salt"));
    const leaves: Bytes[] = [];
    for (let no = 1n; no <= round.leaves; no += 1n) leaves.push(round.leafOf.get(no) ?? padding(salt, no));
    const root = hex(rootOf(leaves));
    demand(root === text(round.body, "seats_root"), 28, "the seats and the padding do not have the round's seats_root");
  }

  /** What a round lacks when the next one begins, or at the end. */
  lacks(round: TableRound): string {
    if (!round.final) return "the round has no table_final";
    return round.unanswered ? `${round.unanswered} seats of the round have no final` : "";
  }
}

/** The hands of a seat: its own, or those that all share. */
export function handsAt(round: TableRound, seatNo: bigint): Hands | null {
  if (!round.cards || !round.ruleset) return null;
  return handsOf(round.ruleset, round.cards, round.ruleset.isShared ? 0 : Number(seatNo) - 1);
}

/** The limits of the table within those of the ruleset. */
export function demandWithinTable(round: TableRound, bets: readonly JsonObject[]): void {
  for (const limit of objectsAt(round.body, "limits")) {
    const bet = bets.find((one) => equal(one["bet"], limit["bet"]));
    if (!bet) continue;
    const amount = whole(bet, "amount_minor");
    const isWithin = amount >= whole(limit, "min_minor") && amount <= whole(limit, "max_minor");
    demand(isWithin, 10, `${text(bet, "bet")} ${amount} is outside of the table's limits`);
  }
}

function isPowerOfTwo(value: bigint): boolean {
  return value > 0n && (value & (value - 1n)) === 0n;
}

/** The smallest power of two that is at least the number of seats, and at least 64. */
function leavesFor(seats: bigint): bigint {
  let leaves = LEAVES_MIN;
  while (leaves < seats) leaves *= 2n;
  return leaves;
}

function padding(salt: Bytes, no: bigint): Bytes {
  const number = new Uint8Array(4);
  new DataView(number.buffer).setUint32(0, Number(no));
  return tagged("rgs/padding/v1", salt, number);
}

