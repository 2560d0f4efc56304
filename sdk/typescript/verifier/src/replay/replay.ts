/** The whole procedure of docs/verify.md 3: lines in, faults out, and the counts at the end. */

import { unhex, type Bytes } from "../bytes.js";
import { deckOf } from "../cards.js";
import { demand, Fault } from "../checks.js";
import { has, objectAt, objectsAt, text, whole, type JsonObject } from "../json.js";
import type { KeyBook } from "../keys.js";
import { LINE_BYTES_MAX, parseLine, privateHash, type Line } from "../lines.js";
import type { Rulebook } from "../rules.js";
import { UNRECOVERABLE, voidReason } from "../rounds.js";
import { at, parseEnvelope, type Statement } from "../statements.js";
import type { Trace } from "../trace.js";
import { takeFreeBet } from "./freebets.js";
import { Ids } from "./ids.js";
import { Instances } from "./instances.js";
import { Places } from "./places.js";
import { Rounds } from "./rounds.js";
import { Scopes } from "./scopes.js";
import { currencyOf, isFinal, isOpening, Sessions } from "./sessions.js";
import { Solo } from "./solo.js";
import type { OpenSeat, Session, TableRound } from "./state.js";
import { Tables } from "./tables.js";
import { Voids } from "./voids.js";

/** What a replay counted. */
export interface Counts {
  lines: number;
  readonly statements: { [kind: string]: number };
  roundsVerified: number;
  roundsFailed: number;
  roundsOpen: number;
  /** Finals of sessions with play money; their amounts are in no sum. */
  roundsDemo: number;
  sessions: number;
  instances: number;
  seatsVoid: number;
  seatsUnrecoverable: number;
  drawsDiscarded: number;
  drawsExposed: number;
  privateVerified: number;
  privateAbsent: number;
  idsAbsent: number;
  isCut: boolean;
  hasDevelopmentKeys: boolean;
  /** Of finals that passed, by currency, in whole minor units; "" where cut files do not show the currency. */
  readonly stakedMinor: { [currency: string]: string };
  readonly returnedMinor: { [currency: string]: string };
}

export class Replay {
  readonly counts: Counts = {
    ...{ lines: 0, statements: {}, roundsVerified: 0, roundsFailed: 0, roundsOpen: 0, roundsDemo: 0, sessions: 0, instances: 0 },
    ...{ seatsVoid: 0, seatsUnrecoverable: 0, drawsDiscarded: 0, drawsExposed: 0, privateVerified: 0 },
    ...{ privateAbsent: 0, idsAbsent: 0, isCut: false, hasDevelopmentKeys: false, stakedMinor: {}, returnedMinor: {} },
  };
  private readonly scopes: Scopes;
  private readonly instances: Instances;
  private readonly sessions: Sessions;
  private readonly rounds = new Rounds();
  private readonly voids = new Voids();
  private readonly ids = new Ids();
  private readonly solo: Solo;
  private readonly tables: Tables;
  private readonly places: Places;
  private faults: Fault[] = [];
  /** The table_final of the seat_final that is read. */
  private table: JsonObject = {};
  private round = "";
  /** Rounds whose deck was never shown. */
  private exposed = 0;

  /** `isPartial`: the lines are some statements of rounds, and nothing is missing where they have gaps. */
  constructor(
    private readonly keys: KeyBook,
    rulebook: Rulebook,
    options: { readonly trace?: Trace | undefined; readonly isPartial?: boolean } = {},
  ) {
    const { trace, isPartial = false } = options;
    keys.isCut = isPartial;
    this.scopes = new Scopes(isPartial);
    keys.showsBeginning = (instance) => this.scopes.showsBeginning(instance);
    this.instances = new Instances(this.scopes);
    this.sessions = new Sessions(this.scopes, rulebook);
    this.solo = new Solo(rulebook, trace);
    this.tables = new Tables(rulebook, trace);
    this.places = new Places(this.tables, trace);
  }

  /** Takes one line, with its line feed. The checks that failed. */
  async feed(line: Bytes): Promise<readonly Fault[]> {
    this.counts.lines += 1;
    this.faults = [];
    this.round = "";
    try {
      const ends = line[line.length - 1] === 10 && line.length <= LINE_BYTES_MAX + 1;
      demand(ends, 1, `the line does not end in a line feed within ${LINE_BYTES_MAX} bytes`);
      const parsed = parseLine(line.slice(0, -1));
      this.take(await this.keys.verified(parseEnvelope(parsed.envelope)), parsed);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      this.faults.push(error);
    }
    return this.faults;
  }

  /** Takes a statement that the key book has verified. The checks that failed. */
  feedVerified(statement: Statement, beside: Line): readonly Fault[] {
    this.faults = [];
    this.round = "";
    this.take(statement, beside);
    return this.faults;
  }

  /** One group of checks: its first fault is reported, and fails the round of an opening or a final.
   * Whether all hold. */
  private group(checks: () => void): boolean {
    try {
      checks();
      return true;
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      this.report(error);
      return false;
    }
  }

  private readonly report = (fault: Fault): void => {
    this.faults.push(fault);
    if (this.round) this.rounds.fail(this.round);
  };

  private take(statement: Statement, line: Line): void {
    const { kind, body } = statement;
    demand(!line.path || kind.name === "seat_opening", 1, `a path stands beside a ${kind.name}`);
    if (this.instances.isRepeatedStart(statement)) return;
    this.counts.statements[kind.name] = (this.counts.statements[kind.name] ?? 0) + 1;
    if (this.keys.isDevelopment(statement)) this.counts.hasDevelopmentKeys = true;
    const session = kind.linked ? this.sessions.at(text(body, "session_id")) : null;
    this.round = roundOf(statement);
    const hasSoundPrivate = this.group(() => this.checkPrivate(statement, line));
    if (kind.name === "instance_start" && !this.group(() => this.start(statement))) return;
    if (kind.numbered && kind.name !== "instance_start") this.scopes.hasBegun = true;
    if (kind.numbered) this.group(() => this.instances.number(statement));
    this.group(() => this.scopes.checkInside(statement));
    if (session) this.link(statement, session, hasSoundPrivate, line);
    else if (kind.name.startsWith("table_")) this.tableStatement(statement);
    else {
      this.group(() => this.content(statement));
      this.group(() => this.draw(statement));
    }
  }

  private checkPrivate({ kind, body }: Statement, { private: found }: Line): void {
    if (kind.hasPrivate && !found) this.counts.privateAbsent += 1;
    if (!found) return;
    demand(kind.hasPrivate, 5, `a ${kind.name} has no private block`);
    demand(privateHash(found) === text(body, "private"), 5, "salt and block do not give the hash in the statement");
    this.counts.privateVerified += 1;
  }

  private start(statement: Statement): void {
    this.instances.start(statement);
    this.keys.takeStart(statement);
  }

  /** Check 7 of a link, then its content, and what it stands among. */
  private link(statement: Statement, session: Session, hasSoundPrivate: boolean, line: Line): void {
    const { kind, body } = statement;
    const hadGap = whole(body, "link_no") !== session.link + 1n;
    const { opening, tableRound } = session;
    if (!this.sessions.link(statement, session, this.report)) return;
    const answers = isFinal(kind.name) && opening?.statement.hash === text(body, "opening");
    const ends = isOpening(kind.name) || isFinal(kind.name) || kind.name === "session_close";
    if (opening && !answers && (ends || !session.opening)) {
      session.opening = null;
      session.tableRound = null;
      this.unanswered(opening, tableRound, hadGap);
    }
    const isFirst = session.participation === "";
    const wasUsed = kind.name === "round_opening" && this.rounds.begin(statement);
    const holds = this.group(() => this.linkContent(statement, session));
    if (kind.name === "round_opening") {
      this.group(() => this.draw(statement));
      this.group(() => this.rounds.seat(statement, wasUsed));
    }
    if (kind.name === "seat_opening") {
      this.group(() => this.places.seat(statement, line.path, !this.scopes.isCut));
    }
    if (hasSoundPrivate) this.group(() => this.ids.check(statement, session, line.private?.block ?? null, isFirst));
    if (isFinal(kind.name) && holds) this.countMoney(body, session);
    if (isFinal(kind.name) && holds && text(body, "status") === "void") this.voided(statement, opening);
    if (opening && answers) this.answer(opening, tableRound);
  }

  /** Adds a final to the sums. Play money is counted apart, by rounds only. */
  private countMoney(body: JsonObject, session: Session): void {
    const { counts } = this;
    if (session.isDemo) {
      counts.roundsDemo += 1;
      return;
    }
    const currency = currencyOf(session);
    for (const [sums, key] of [[counts.stakedMinor, "staked_minor"], [counts.returnedMinor, "returned_minor"]] as const) {
      sums[currency] = String(BigInt(sums[currency] ?? 0) + whole(body, key));
    }
  }

  /** A seat has its final. */
  private answer(opening: OpenSeat, tableRound: TableRound | null): void {
    if (opening.statement.kind.name === "round_opening") this.rounds.final(opening.round);
    if (!tableRound) return;
    tableRound.unanswered -= 1;
    if (this.scopes.isCut && tableRound.table.newest !== tableRound) this.finishTableRound(tableRound);
  }

  /** A seat that is void; of solo play the events that the void stands on. */
  private voided(statement: Statement, opening: OpenSeat | null): void {
    const { body, kind } = statement;
    const isSolo = kind.name === "round_final";
    const { table } = this;
    const isHidden = isSolo ? !has(body, "deck") : has(table, "deal") && !has(table, "deck");
    this.counts.seatsVoid += 1;
    if (isHidden) this.counts.seatsUnrecoverable += 1;
    if (!isSolo) return;
    if (isHidden) this.exposed += 1;
    const decided = objectsAt(body, "actions").map((action) => at(action, "time"));
    const from = opening?.statement.time ?? 0;
    const one = { final: statement, round: this.round, session: text(body, "session_id"), from, decided };
    this.group(() => this.voids.check(one, this.scopes.isCut));
  }

  /** An opening that no final answers. In cut files the final may be missing with other links. */
  private unanswered(opening: OpenSeat, tableRound: TableRound | null, hadGap: boolean): void {
    const isOutside = this.scopes.isCut && hadGap;
    if (isOutside && tableRound) tableRound.isCut = true;
    if (!isOutside) {
      this.faults.push(new Fault(11, `no final answers the opening of ${opening.round}`));
      this.rounds.fail(opening.round);
    }
    if (!isOutside || tableRound) this.answer(opening, tableRound);
  }

  // --- tables ---

  private tableStatement(statement: Statement): void {
    const { kind, body } = statement;
    const isWhole = !this.scopes.isCut;
    if (kind.name === "table_round") {
      const before = this.tables.newestOf(statement);
      this.group(() => this.tables.begin(statement, isWhole));
      if (before && (isWhole || !before.unanswered)) this.finishTableRound(before);
    } else if (kind.name === "table_seats") {
      this.group(() => this.tables.takeSeats(statement));
    } else if (kind.name === "table_deal") {
      const deal = objectAt(body, "deal");
      const [no, reseeds] = [whole(deal, "draw_no"), whole(deal, "reseed_counter")];
      this.group(() => this.instances.draw(text(body, "instance"), no, reseeds));
      this.group(() => demand(this.rounds.deal(this.round), 25, `the round id ${this.round} was dealt before`));
      this.group(() => this.tables.takeDeal(statement, isWhole));
    } else {
      this.group(() => this.tables.end(statement, isWhole));
      this.tableVoid(statement);
    }
  }

  /** The events that the void of a table's round stands on. */
  private tableVoid(statement: Statement): void {
    const { body } = statement;
    const round = this.tables.roundOf(statement);
    if (!round?.isEndSound || text(body, "status") !== "void") return;
    if (voidReason(body) === UNRECOVERABLE && round.deal) this.exposed += 1;
    const decided = objectsAt(body, "windows").map((window) => at(window, "close_time"));
    const from = round.deal?.time ?? at(round.body, "betting_open_time");
    const one = { final: statement, round: this.round, session: "", from, decided };
    this.group(() => this.voids.check(one, this.scopes.isCut));
  }

  /** A round of a table is over: the next one begins, or the files end. */
  private finishTableRound(round: TableRound): void {
    const lacking = this.tables.lacks(round);
    if (lacking && !this.scopes.isCut) {
      this.faults.push(new Fault(28, lacking));
      this.rounds.fail(round.id);
    }
    this.rounds.endOfTable(round.id, round.isCut || lacking !== "");
    this.tables.forget(round);
  }

  private linkContent(statement: Statement, session: Session): void {
    const { kind } = statement;
    if (kind.name === "session_open") this.sessions.open(statement, session);
    if (kind.name === "purchase") this.sessions.purchase(statement, session);
    if (kind.name === "transfer") this.sessions.transfer(statement, session);
    if (kind.name === "free_bet") takeFreeBet(statement, session);
    if (kind.name === "participation_end") this.sessions.end(statement, session);
    if (kind.name === "session_close") this.sessions.close(statement, session);
    if (kind.name === "round_opening") this.solo.opening(statement, session);
    if (kind.name === "round_final") this.solo.final(statement, session);
    if (kind.name === "seat_opening") this.places.opening(statement, session);
    if (kind.name === "seat_final") {
      this.table = session.tableRound?.final?.body ?? {};
      this.places.final(statement, session);
    }
  }

  /** Statements that are no links. */
  private content(statement: Statement): void {
    const { kind, body } = statement;
    if (kind.name.startsWith("instance_") || kind.name === "draw_window") this.instances.take(statement);
    if (kind.name === "event") this.voids.event(statement);
    if (kind.name === "discarded_draw") {
      this.counts.drawsDiscarded += 1;
      deckOf(unhex(text(body, "transcript")));
    }
    if (kind.name === "export_scope") {
      const seen = (name: string, isSession: boolean, first: bigint): boolean => this.hasSeen(name, isSession, first);
      this.group(() => this.scopes.take(statement, seen));
      this.keys.isCut = this.scopes.isCut;
    }
  }

  private hasSeen(name: string, isSession: boolean, first: bigint): boolean {
    const session = this.sessions.all.get(name);
    if (isSession) return session !== undefined && (session.isClosed || session.link >= first);
    const last = this.instances.all.get(name)?.last ?? 0n;
    return last >= first && last > 1n;
  }

  /** Check 20 of the draw that a statement uses. */
  private draw({ kind, body }: Statement): void {
    if (kind.name === "discarded_draw") {
      this.instances.draw(text(body, "instance"), whole(body, "draw_no"), whole(body, "reseed_counter"));
    }
    if (kind.name !== "round_opening") return;
    const deal = objectAt(body, "deal");
    const [instance, no] = [text(body, "instance"), whole(deal, "draw_no")];
    if (!this.rounds.isNewDraw(text(deal, "round_id"), `${instance} ${no}`)) return;
    this.instances.draw(instance, no, whole(deal, "reseed_counter"));
  }

  /** The end of the files: what is missing. */
  finish(): readonly Fault[] {
    this.faults = [];
    this.round = "";
    const { isCut } = this.scopes;
    for (const session of this.sessions.all.values()) {
      const { opening, tableRound } = session;
      if (opening && this.sessions.isShort(session)) this.unanswered(opening, tableRound, false);
    }
    for (const round of this.tables.all()) this.finishTableRound(round);
    this.faults.push(...this.sessions.finish(), ...this.instances.finish(), ...this.rounds.finish(isCut));
    for (const { fault, round } of this.voids.finish(isCut)) {
      this.faults.push(fault);
      this.rounds.fail(round);
    }
    this.count();
    return this.faults;
  }

  private count(): void {
    const { counts, rounds } = this;
    counts.roundsVerified = rounds.verified;
    counts.roundsFailed = rounds.failed;
    counts.roundsOpen = rounds.open;
    counts.sessions = this.sessions.all.size;
    counts.instances = [...this.instances.all.values()].filter((one) => one.start !== null).length;
    counts.drawsExposed = Number(this.instances.exposed) + this.exposed;
    counts.idsAbsent = this.ids.absent;
    counts.isCut = this.scopes.isCut;
  }
}

/** The round that a failure of this statement fails; "" where it is none. */
function roundOf({ kind, body }: Statement): string {
  if (kind.name === "round_opening") return text(objectAt(body, "deal"), "round_id");
  const names = isFinal(kind.name) || isOpening(kind.name) || kind.name.startsWith("table_");
  return names ? text(body, "round_id") : "";
}
