/** Instances: their numbers (check 6), draws (20) and lives (21). */

import { demand, Fault } from "../checks.js";
import { has, objectAt, text, whole } from "../json.js";
import type { JsonObject } from "../json.js";
import type { Statement } from "../statements.js";
import { mayFollow, type Scopes } from "./scopes.js";

export interface Instance {
  readonly name: string;
  start: JsonObject | null;
  startHash: string;
  last: bigint;
  /** No number is missing so far. */
  isComplete: boolean;
  /** The last draw as its own instance_end says. */
  ended: bigint | null;
  lost: JsonObject | null;
  window: bigint;
  readonly draws: Set<bigint>;
  highest: bigint;
}

export class Instances {
  readonly all = new Map<string, Instance>();
  /** How many draws of lost instances may be unknown. */
  exposed = 0n;

  constructor(private readonly scopes: Scopes) {}

  at(name: string): Instance {
    let found = this.all.get(name);
    if (!found) {
      found = {
        ...{ name, start: null, startHash: "", last: 0n, isComplete: true, ended: null, lost: null, window: 0n },
        ...{ draws: new Set<bigint>(), highest: 0n },
      };
      this.all.set(name, found);
    }
    return found;
  }

  /** Whether an instance_start repeats one that was read: allowed in cut files. */
  isRepeatedStart({ kind, body, hash }: Statement): boolean {
    return (
      kind.name === "instance_start" && this.scopes.isCut && this.all.get(text(body, "instance"))?.startHash === hash
    );
  }

  /** Checks 6 and 21 of a numbered statement, and the newest number. */
  number({ kind, body }: Statement): void {
    const instance = this.at(text(body, "instance"));
    const no = whole(body, "statement_no");
    const { last } = instance;
    const ranges = this.scopes.instances.get(instance.name);
    const follows = mayFollow(no, last, { isCut: this.scopes.isCut, ranges, fromOne: true });
    if (no !== last + 1n) instance.isComplete = false;
    if (no > last) instance.last = no;
    demand(no > last, 6, `statement ${no} comes after ${last}: repeated or out of order`);
    demand(follows, 6, `statement ${no} comes after ${last}: ${no - last - 1n} missing`);
    demand(instance.ended === null, 21, `${kind.name} follows the instance_end of ${instance.name}`);
  }

  /** Check 21 of an instance_start, before its number is looked at. */
  start({ body, hash }: Statement): void {
    const instance = this.at(text(body, "instance"));
    demand(instance.start === null, 21, `${instance.name} was started before`);
    instance.start = body;
    instance.startHash = hash;
    instance.window = whole(body, "draws_in_flight_max");
  }

  take(statement: Statement): void {
    const { kind, body } = statement;
    const instance = this.at(text(body, "instance"));
    if (kind.name === "instance_end") {
      instance.ended = whole(body, "last_draw_no");
    } else if (kind.name === "instance_lost") {
      const lost = objectAt(body, "lost");
      const name = text(lost, "instance");
      demand(name !== instance.name, 21, `${name} cannot say of itself that it is lost`);
      const other = this.at(name);
      demand(other.lost === null, 21, `${name} was declared lost before`);
      other.lost = body;
    } else if (kind.name === "draw_window") {
      const window = whole(body, "draws_in_flight_max");
      const before = instance.window;
      if (window > before) instance.window = window;
      demand(window > before, 20, `a draw window of ${window} follows one of ${before}: it can only grow`);
    }
  }

  /** Check 20 of one draw. */
  draw(name: string, no: bigint, reseeds: bigint): void {
    const instance = this.at(name);
    const isNew = !instance.draws.has(no);
    instance.draws.add(no);
    if (no > instance.highest) instance.highest = no;
    demand(isNew, 20, `draw ${no} of ${name} is used twice`);
    demand(reseeds === no, 20, `draw ${no} of ${name}: the reseed counter is ${reseeds}`);
    const outstanding = instance.highest - BigInt(instance.draws.size);
    const isWithin = !instance.isComplete || outstanding <= instance.window;
    demand(isWithin, 20, `${outstanding} draws below ${instance.highest} of ${name} are outstanding, at most ${instance.window} may be`);
  }

  /** Checks 20 to 22 at the end of the files. */
  *finish(): Generator<Fault> {
    for (const instance of this.all.values()) {
      if (instance.start === null) {
        if (instance.lost && !this.scopes.isCut) yield new Fault(21, `${instance.name}, declared lost, is not in the files`);
        continue;
      }
      yield* this.ends(instance);
      yield* this.lives(instance);
      yield* this.accounts(instance);
    }
    for (const name of this.scopes.instances.keys()) {
      if (!this.all.get(name)?.start) yield new Fault(22, `the scope promises the instance ${name}, of which nothing is here`);
    }
    yield* this.boots();
  }

  private *ends(instance: Instance): Generator<Fault> {
    const { name, last } = instance;
    const ranges = this.scopes.instances.get(name);
    if (this.scopes.isCut) {
      const range = (ranges ?? []).find((one) => one.last > last);
      if (range) yield new Fault(22, `the range of ${name} ends at ${range.last}, the files at ${last}`);
    } else if (instance.ended === null && !instance.lost) {
      yield new Fault(22, `instance ${name} ends at ${last} without its end`);
    }
  }

  private *lives(instance: Instance): Generator<Fault> {
    const { name, start, lost, last } = instance;
    if (!lost) return;
    if (instance.ended !== null) yield new Fault(21, `${name} ended by itself, and was declared lost`);
    const by = this.at(text(lost, "instance")).start;
    if (by && start && text(by, "store_epoch") !== text(start, "store_epoch")) {
      yield new Fault(21, `${name} is of another store epoch than the instance that declares it lost`);
    }
    const told = whole(objectAt(lost, "lost"), "last_statement_no");
    const agrees = this.scopes.isCut ? told >= last : told === last;
    if (!agrees) yield new Fault(21, `${name} shows statement ${last}, and was lost after ${told}`);
  }

  /** The numbers with which an instance ended, as far as the files show them. */
  private lastDraw(instance: Instance): bigint | null {
    if (instance.ended !== null) return instance.ended;
    return instance.lost ? whole(objectAt(instance.lost, "lost"), "last_draw_no") : null;
  }

  private *accounts(instance: Instance): Generator<Fault> {
    const last = this.lastDraw(instance);
    if (last === null) return;
    const { name, highest, draws } = instance;
    const isWhole = instance.isComplete && this.endsHere(instance);
    if (highest > last || (isWhole && BigInt(draws.size) !== last)) {
      yield new Fault(20, `instance ${name} accounts for ${draws.size} draws up to ${highest}, and ends with draw ${last}`);
    }
    if (instance.lost) this.exposed += instance.window;
  }

  /** Whether its last statement is in the files. */
  private endsHere(instance: Instance): boolean {
    if (instance.ended !== null) return true;
    return instance.lost !== null && whole(objectAt(instance.lost, "lost"), "last_statement_no") === instance.last;
  }

  /** Check 21: the boots of each worker. */
  private *boots(): Generator<Fault> {
    const workers = new Map<string, Map<bigint, Instance>>();
    for (const instance of this.all.values()) {
      if (!instance.start) continue;
      const boots = workers.get(workerOf(instance.start)) ?? new Map<bigint, Instance>();
      workers.set(workerOf(instance.start), boots);
      const no = whole(instance.start, "boot_no");
      const other = boots.get(no);
      if (other) yield new Fault(21, `${instance.name}: ${other.name} has the boot number ${no} already`);
      else boots.set(no, instance);
    }
    for (const boots of workers.values()) {
      for (const [no, { name, start }] of boots) {
        const before = boots.get(no - 1n);
        const isNamed = has(start!, "previous_boot");
        if (no > 1n && !before && !this.scopes.isCut) yield new Fault(21, `${name}: boot ${no - 1n} of its worker is missing`);
        else if (isNamed) yield* this.previousBoot(name, start!);
        else if (before && !before.lost && !this.scopes.isCut) {
          yield new Fault(21, `${name} names no previous boot, and ${before.name} before it was not lost`);
        }
      }
    }
  }

  private *previousBoot(name: string, start: JsonObject): Generator<Fault> {
    const named = objectAt(start, "previous_boot");
    const before = this.all.get(text(named, "instance"));
    if (!before?.start) {
      if (!this.scopes.isCut) yield new Fault(21, `${name}: the previous boot ${text(named, "instance")} is missing`);
      return;
    }
    const isItsOwn = workerOf(before.start) === workerOf(start);
    if (!isItsOwn || whole(before.start, "boot_no") !== whole(start, "boot_no") - 1n) {
      yield new Fault(21, `${name}: ${before.name} is not the boot before of its worker`);
    }
    const last = this.lastDraw(before);
    if (last === null && !this.scopes.isCut) {
      yield new Fault(21, `${name}: the previous boot ${before.name} has no end, and was not lost`);
      return;
    }
    const lastNo = before.lost ? whole(objectAt(before.lost, "lost"), "last_statement_no") : before.last;
    const told = whole(named, "last_statement_no");
    // A cut may lack the end: it lies behind what the files show.
    const agrees = last === null ? told >= lastNo : last === whole(named, "last_draw_no") && lastNo === told;
    if (!agrees) {
      yield new Fault(21, `${name}: the previous boot ${before.name} did not end with the numbers named`);
    }
  }
}

function workerOf(start: JsonObject): string {
  return `${text(start, "node")} ${text(start, "worker")}`;
}
