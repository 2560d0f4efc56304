/** Rounds of solo play, and of the seats that share one deal: who sits there, and whether all came (checks 9, 11). */

import { hex, utf8, type Bytes } from "../bytes.js";
import { demand, Fault } from "../checks.js";
import { formatCanonical, objectAt, text, whole } from "../json.js";
import { leafHash, rootOf } from "../merkle.js";
import type { Statement } from "../statements.js";

interface Round {
  readonly id: string;
  readonly core: string;
  readonly due: bigint;
  readonly seats: Map<bigint, Bytes>;
  readonly draws: Set<string>;
  finals: number;
}

export class Rounds {
  private readonly openIds = new Set<string>();
  private readonly verifiedIds = new Set<string>();
  private readonly failedIds = new Set<string>();
  /** Ids of rounds that are over. */
  private readonly atTables = new Set<string>();
  private readonly over = new Set<string>();
  private readonly rounds = new Map<string, Round>();

  get verified(): number {
    return this.verifiedIds.size;
  }

  /** Rounds that end outside of the files. */
  get open(): number {
    return [...this.openIds].filter((id) => !this.failedIds.has(id)).length;
  }

  get failed(): number {
    return this.failedIds.size;
  }

  /** A failure of a round that the files have, or name. */
  fail(id: string): void {
    this.failedIds.add(id);
    this.verifiedIds.delete(id);
  }

  /** A round of a table that is dealt. Whether its id is new. */
  deal(id: string): boolean {
    const isNew = !this.rounds.has(id) && !this.over.has(id) && !this.atTables.has(id);
    this.atTables.add(id);
    return isNew;
  }

  /** The end of a round of a table; one that was not dealt is counted where it fails only. */
  endOfTable(id: string, isLeftOpen: boolean): void {
    if (!this.atTables.has(id) || this.failedIds.has(id)) return;
    if (isLeftOpen) this.openIds.add(id);
    else this.verifiedIds.add(id);
  }

  /** Whether this opening is the first to name this draw of its round. */
  isNewDraw(id: string, draw: string): boolean {
    const round = this.rounds.get(id);
    if (!round || round.draws.has(draw)) return false;
    round.draws.add(draw);
    return true;
  }

  /** The round of an opening: begun by it, unless it is there. Whether its id was used by a round that is over. */
  begin(opening: Statement): boolean {
    const deal = objectAt(opening.body, "deal");
    const id = text(deal, "round_id");
    if (this.rounds.has(id)) return false;
    const due = whole(deal, "seats");
    const round = { id, core: formatCanonical(deal), due, seats: new Map<bigint, Bytes>(), draws: new Set<string>() };
    this.rounds.set(id, { ...round, finals: 0 });
    return this.over.has(id) || this.atTables.has(id);
  }

  /** Check 9 across the seats of a round. */
  seat(opening: Statement, wasUsed: boolean): void {
    const deal = objectAt(opening.body, "deal");
    const seat = objectAt(opening.body, "seat");
    const round = this.rounds.get(text(deal, "round_id"))!;
    const no = whole(seat, "seat_no");
    demand(!wasUsed, 9, `the round id ${round.id} was used before`);
    demand(formatCanonical(deal) === round.core, 9, "the deal core differs from that of the round's other seats");
    demand(!round.seats.has(no), 9, `seat ${no} of the round was opened before`);
    round.seats.set(no, leafHash(utf8(formatCanonical(seat))));
    if (round.due === 1n || BigInt(round.seats.size) !== round.due) return; // the path of a single seat has shown it
    const leaves = [...round.seats].sort(([left], [right]) => (left < right ? -1 : 1)).map(([, leaf]) => leaf);
    demand(hex(rootOf(leaves)) === text(deal, "seats_root"), 9, "the seats of the round do not have the deal's seats_root");
  }

  final(id: string): void {
    const round = this.rounds.get(id);
    if (!round) return;
    round.finals += 1;
    if (BigInt(round.seats.size) < round.due || round.finals < round.seats.size) return;
    this.count(round);
  }

  private count(round: Round): void {
    this.rounds.delete(round.id);
    this.over.add(round.id);
    if (!this.failedIds.has(round.id)) this.verifiedIds.add(round.id);
  }

  /** The end of the files. */
  *finish(isCut: boolean): Generator<Fault> {
    for (const round of [...this.rounds.values()]) {
      const isShort = BigInt(round.seats.size) < round.due;
      if (!isCut && isShort) {
        this.fail(round.id);
        yield new Fault(9, `${round.due} seats of ${round.id} were dealt, ${round.seats.size} opened`);
      }
      if (this.failedIds.has(round.id) || round.finals >= round.seats.size) this.count(round);
      else this.openIds.add(round.id);
    }
  }
}

