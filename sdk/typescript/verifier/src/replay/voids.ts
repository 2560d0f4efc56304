/** What a void stands on: events before it, and admins' certificates anywhere in the files (check 19). */

import { demand, Fault } from "../checks.js";
import { objectAt, objectsAt, text, textOr, type JsonObject } from "../json.js";
import { at, type Statement } from "../statements.js";

interface Told {
  readonly body: JsonObject;
  readonly time: number;
  /** Its place among the events that concern rounds. */
  readonly place: number;
}

interface Approved {
  readonly party: string;
  readonly time: number;
  readonly round: string;
}

interface Certificate {
  added: number;
  removed: number;
}

/** The void final, and what is known of its round. */
export interface VoidOf {
  readonly final: Statement;
  readonly round: string;
  /** "" for a table. */
  readonly session: string;
  /** The opening's time, or what stands in its place. */
  readonly from: number;
  /** The times of the decisions; of a table the ends of the windows. */
  readonly decided: readonly number[];
}

export class Voids {
  private readonly malfunctions = new Map<string, Told>();
  private readonly newest = new Map<string, number>();
  private readonly proposals = new Map<string, Told[]>();
  private readonly certificates = new Map<string, Certificate>();
  private readonly holders = new Map<string, string>();
  private readonly approved: Approved[] = [];
  private place = 0;

  event({ body, hash, time }: Statement): void {
    const code = text(body, "code");
    const round = textOr(body, "round_id");
    this.place += 1;
    const told = { body, time, place: this.place };
    if (code === "MALFUNCTION") this.malfunctions.set(hash, told);
    if (code === "MALFUNCTION" || code === "ROUND_RESUMED") this.newest.set(round, this.place);
    if (code === "VOID_PROPOSED") this.proposals.set(round, [...(this.proposals.get(round) ?? []), told]);
    if (code === "CERTIFICATE_ADDED" || code === "CERTIFICATE_REMOVED") this.certificate(body, time, code);
  }

  private certificate(body: JsonObject, time: number, code: string): void {
    const [role, party, fingerprint, ...more] = textOr(body, "subject").split(" ");
    if (role === undefined || party === undefined || fingerprint === undefined || more.length) return;
    const holder = this.holders.get(fingerprint) ?? party;
    this.holders.set(fingerprint, holder);
    if (role !== "admin" || holder !== party) return;
    const name = `${party} ${fingerprint}`;
    const found = this.certificates.get(name) ?? { added: Infinity, removed: Infinity };
    if (code === "CERTIFICATE_ADDED" && found.added === Infinity) found.added = time;
    if (code === "CERTIFICATE_REMOVED" && found.removed === Infinity) found.removed = time;
    this.certificates.set(name, found);
  }

  /** The events before a void. Whether admins approved it is known at the end of the files. */
  check(one: VoidOf, isCut: boolean): void {
    const found = objectAt(one.final.body, "void");
    const approvals = objectsAt(found, "approvals");
    const hash = text(found, "malfunction");
    const told = this.malfunctions.get(hash);
    if (!told) demand(isCut, 19, `${hash} is no malfunction before the void`);
    if (told) this.checkMalfunction(one, told, approvals.map((approval) => at(approval, "time")));
    const first = approvals[0]!;
    const isProposed = (this.proposals.get(one.round) ?? []).some(
      ({ body, time }) =>
        isOfSession(body, one.session) &&
        textOr(body, "actor") === text(first, "party") &&
        time === at(first, "time") &&
        textOr(body, "reason") === text(found, "reason"),
    );
    demand(isCut || isProposed, 19, `no proposal of ${text(first, "party")} stands before the void`);
    for (const approval of approvals) {
      this.approved.push({ party: text(approval, "party"), time: at(approval, "time"), round: one.round });
    }
  }

  private checkMalfunction(one: VoidOf, told: Told, approvals: readonly number[]): void {
    const { body, time } = told;
    const isOfRound = textOr(body, "round_id") === one.round && isOfSession(body, one.session);
    demand(isOfRound, 19, `the malfunction is that of round ${textOr(body, "round_id") || "none"}`);
    demand(this.newest.get(one.round) === told.place, 19, "the round was resumed behind the malfunction, or paused again");
    const order = [one.from, time, ...approvals];
    const rises = order.every((each, place) => place === 0 || each >= order[place - 1]!);
    demand(rises, 19, "opening, malfunction and approvals are not in the order of time");
    demand(one.decided.every((each) => each <= time), 19, "a decision was taken while the round was paused");
  }

  /** Each approval by an admin of its time; the failing rounds. In cut files certificates may be missing. */
  *finish(isCut: boolean): Generator<{ readonly fault: Fault; readonly round: string }> {
    if (isCut) return;
    for (const { party, time, round } of this.approved) {
      const isAdmin = [...this.certificates].some(
        ([name, { added, removed }]) => name.startsWith(`${party} `) && added <= time && !(removed < time),
      );
      if (!isAdmin) yield { fault: new Fault(19, `no event shows that ${party} was an admin when approving`), round };
    }
  }
}

/** Whether an event that may name a session is of this one; a table's name none. */
function isOfSession(body: JsonObject, session: string): boolean {
  const named = textOr(body, "session_id");
  return named === "" || named === session;
}
