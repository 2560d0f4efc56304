/** Sessions: the order of their links (check 7), and what stands in them: openings, purchases, transfers, ends (8, 18). */

import { demand, Fault } from "../checks.js";
import { has, objectAt, objectsAt, text, textOr, whole, type JsonObject } from "../json.js";
import type { Jurisdiction, Rulebook, Ruleset } from "../rules.js";
import { at, type Statement } from "../statements.js";
import { freeBetStage, keepPaid, unseenRound } from "./freebets.js";
import { mayFollow, type Scopes } from "./scopes.js";
import type { BetLimit, Session, Sums } from "./state.js";

export const ZEROS = "0".repeat(64);

/** Links that no seamless session has. */
const OF_PARTICIPATION = ["purchase", "free_bet", "seat_opening", "participation_end"];
const PLAYABLE = [...OF_PARTICIPATION, "round_opening"];
const PARTICIPATION: { readonly [after: string]: readonly string[] } = {
  "": ["session_open"],
  session_open: ["purchase", "session_close"],
  purchase: PLAYABLE,
  round_final: PLAYABLE,
  seat_final: PLAYABLE,
  round_opening: ["round_final"],
  seat_opening: ["seat_final"],
  "free_bet before": ["round_opening"],
  "free final": ["free_bet"],
  "free_bet behind": PLAYABLE,
  participation_end: ["session_close"],
};
const SEAMLESS: { readonly [after: string]: readonly string[] } = {
  "": ["session_open"],
  session_open: ["transfer", "session_close"],
  round_final: ["transfer", "session_close"],
  "transfer behind": ["transfer", "session_close"],
  "transfer before": ["round_opening"],
  round_opening: ["transfer", "round_final"],
  "transfer within": ["transfer", "round_final"],
};
const OPENINGS = new Set(["round_opening", "seat_opening"]);
const FINALS = new Set(["round_final", "seat_final"]);

export function nameOf(reference: JsonObject): string {
  return `${text(reference, "id")} ${text(reference, "version")} ${text(reference, "sha256")}`;
}

export class Sessions {
  readonly all = new Map<string, Session>();

  constructor(
    private readonly scopes: Scopes,
    private readonly rulebook: Rulebook,
  ) {}

  at(id: string): Session {
    let found = this.all.get(id);
    if (!found) {
      found = {
        ...{ id, open: null, rulesetName: "", ruleset: undefined, jurisdiction: undefined, isSeamless: null, isDemo: null, table: null },
        ...{ betLimits: new Map<string, BetLimit>(), freeBet: null, reclaimed: 0n, unseenRound: "", unseenRoundBefore: "" },
        ...{ sums: unknownSums(), link: 0n, hash: ZEROS, time: 0, stage: "", participation: "", start: 0 },
        ...{ codes: new Set<string>(), opening: null, tableRound: null, transferRound: "", stageBefore: "", regulatorParticipation: null, debits: 0n, isClosed: false },
      };
      this.all.set(id, found);
    }
    return found;
  }

  /** Check 7 of a link. Whether it is checked further; `report` gets the fault. */
  link(statement: Statement, session: Session, report: (fault: Fault) => void): boolean {
    const { kind, body, hash, time } = statement;
    const no = whole(body, "link_no");
    const last = session.link;
    if (session.isClosed) {
      report(new Fault(7, `the session was closed before ${kind.name}`));
      return false;
    }
    if (no <= last) {
      report(new Fault(7, `link ${no} comes after ${last}: repeated or out of order`));
      return false;
    }
    const ranges = this.scopes.sessions.get(session.id);
    const follows = mayFollow(no, last, { isCut: this.scopes.isCut, ranges, fromOne: false });
    const mayStand = this.mayStand(session, session.stage, kind.name);
    const { stage: before, hash: previous, time: earlier } = session;
    if (no !== last + 1n) this.forget(session, statement);
    else if (no === 1n) Object.assign(session.sums, zeroSums());
    if (OF_PARTICIPATION.includes(kind.name)) session.isSeamless ??= false;
    if (kind.name !== "free_bet" && !isOpening(kind.name)) keepPaid(session, textOr(body, "round_id"));
    const stage = stageOf(kind.name, session, body);
    const { unseenRound: unseenRoundBefore } = session;
    const unseen = unseenRound(statement, session, no !== last + 1n);
    Object.assign(session, { unseenRound: unseen, unseenRoundBefore });
    Object.assign(session, { link: no, hash, stage, time, stageBefore: no === last + 1n ? before : "" });
    try {
      demand(follows, 7, `link ${no} comes after ${last}: ${no - last - 1n} missing`);
      if (no === last + 1n) {
        demand(text(body, "previous") === previous, 7, `link ${no} does not name the hash of link ${last}`);
        demand(mayStand, 7, `${kind.name} may not follow ${before || "nothing"}`);
      }
      demand(time >= earlier, 7, `${kind.name} is dated before the link before it`);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      report(error);
    }
    return true;
  }

  /** Where links are missing nothing is known of the sums, nor of what stood before. */
  private forget(session: Session, { kind, body }: Statement): void {
    Object.assign(session.sums, unknownSums());
    session.transferRound = "";
    session.freeBet = null;
    const { opening } = session;
    if (!opening) return;
    const isFinalOfIt = isFinal(kind.name) && text(body, "opening") === opening.statement.hash;
    const isSolo = opening.statement.kind.name === "round_opening";
    const isDebit = isSolo && kind.name === "transfer" && text(body, "direction") === "debit" && text(body, "round_id") === opening.round;
    if (!isFinalOfIt && !isDebit) {
      // The round has ended in the missing links.
      session.opening = null;
      session.tableRound = null;
    } else if (isSolo && session.isSeamless !== false) {
      // Nothing but transfers stands between an opening and its final.
      session.debits = null;
      if (kind.name === "round_final") session.isSeamless ??= true;
    }
  }

  /** Whether a kind may follow: by both tables, where nothing has shown yet how the session is funded. */
  mayStand(session: Session, stage: string, kind: string): boolean {
    const tables = session.isSeamless === null ? [PARTICIPATION, SEAMLESS] : [session.isSeamless ? SEAMLESS : PARTICIPATION];
    return tables.some((table) => table[stage]?.includes(kind));
  }

  /** Check 8 of a session_open, taken as the state. */
  open({ kind, body }: Statement, session: Session): void {
    const [ruleset, jurisdiction] = [objectAt(body, "ruleset"), objectAt(body, "jurisdiction")];
    session.open = body;
    session.rulesetName = nameOf(ruleset);
    session.ruleset = this.rulebook.ruleset(ruleset);
    session.jurisdiction = this.rulebook.jurisdiction(jurisdiction);
    session.isSeamless = has(body, "funding");
    session.isDemo = textOr(body, "mode") === "demo";
    const limits = has(body, "bet_limits") ? objectsAt(body, "bet_limits") : [];
    session.betLimits = new Map(limits.map((one) => [text(one, "bet"), { min: whole(one, "min_minor"), max: whole(one, "max_minor") }]));
    session.table = textOr(body, "table");
    demand(session.ruleset !== undefined, 8, `the ruleset ${session.rulesetName} is not known`);
    const law = session.jurisdiction;
    demand(law !== undefined, 8, `the jurisdiction ${nameOf(jurisdiction)} is not known`);
    demand(law.caps.has(text(body, "currency")), 8, `${text(body, "currency")} is not a currency of ${law.id}`);
    demand(law.allowsTestRegulator || body["test_regulator"] !== true, 8, `${law.id} does not allow the test regulator`);
    demand(!session.isSeamless || !law.requiresIds, 8, `${law.id} requires a participation`);
    demand(!session.ruleset.isTableOnly || session.table !== "", 8, `${session.ruleset.id} is played at a table, none is named`);
    if (kind.version > 1) this.second(body, session, session.ruleset, law);
  }

  /** Check 8 of what version 2 of a session_open says: play money with nobody outside, limits inside the ruleset's. */
  private second(body: JsonObject, session: Session, ruleset: Ruleset, law: Jurisdiction): void {
    const hasLimits = has(body, "bet_limits");
    demand(has(body, "mode") || hasLimits, 8, "version 2 without mode and bet_limits, which version 1 says as well");
    if (session.isDemo) {
      demand(law.allowsPlayMoney, 8, `${law.id} version ${law.version} allows no play money`);
      const isApart = !has(body, "funding") && !has(body, "table") && body["test_regulator"] === false;
      demand(isApart, 8, "a session with play money has funding, a table or the test regulator");
    }
    if (!hasLimits) return;
    const names = objectsAt(body, "bet_limits").map((one) => text(one, "bet"));
    demand(names.length > 0, 8, "bet_limits is empty");
    demand(names.join(" ") === [...new Set(names)].sort().join(" "), 8, `bet_limits has ${names.join(" ")}, not each bet once in order`);
    for (const [bet, { min, max }] of session.betLimits) {
      const widest = ruleset.limits.get(bet);
      demand(widest !== undefined, 8, `bet_limits has ${bet}, which players of ${ruleset.id} do not place`);
      const isInside = min <= max && min >= widest.min && max <= widest.max;
      demand(isInside, 8, `the limits ${min} to ${max} of ${bet} are not inside ${widest.min} to ${widest.max} of ${ruleset.id}`);
      const isOnStep = min % ruleset.step === 0n && max % ruleset.step === 0n;
      demand(isOnStep, 8, `the limits ${min} to ${max} of ${bet} are not multiples of ${ruleset.step}`);
    }
  }

  purchase({ body }: Statement, session: Session): void {
    const { sums, jurisdiction: law, participation } = session;
    const [no, amount, bought] = [whole(body, "purchase_no"), whole(body, "amount_minor"), whole(body, "bought_minor")];
    const [before, after] = [whole(body, "balance_before_minor"), whole(body, "balance_after_minor")];
    const was = { ...sums };
    Object.assign(sums, { purchases: no, balance: after, bought });
    session.participation = text(body, "participation_id");
    demand(was.purchases === null || no === was.purchases + 1n, 7, `purchase ${no} comes after ${was.purchases ?? 0n}`);
    const isOne = participation === "" || participation === session.participation;
    demand(isOne, 7, "a second participation in one session");
    const cap = law?.caps.get(currencyOf(session)) ?? 0n;
    demand(!law || bought <= cap, 8, `purchases of ${bought} are above the cap of ${cap}`);
    demand(was.balance === null || before === was.balance, 18, `balance ${before} before, the links leave ${was.balance ?? 0n}`);
    demand(after === before + amount, 18, `${before} + ${amount} is not ${after}`);
    demand(bought >= amount && (was.bought === null || bought === was.bought + amount), 18, `${bought} bought is not the sum of the purchases`);
  }

  end({ body }: Statement, session: Session): void {
    const { sums, participation } = session;
    const was = { ...sums };
    const [bought, staked, returned] = ["bought_minor", "staked_minor", "returned_minor"].map((key) => whole(body, key)) as [bigint, bigint, bigint];
    const paidOut = whole(body, "paid_out_minor");
    const isIts = participation === "" || text(body, "participation_id") === participation;
    demand(isIts, 7, "the end of another participation");
    this.checkRounds(body, was);
    for (const [key, due, shown] of [
      ["bought_minor", was.bought, bought],
      ["staked_minor", was.staked, staked],
      ["returned_minor", was.returned, returned],
      ["paid_out_minor", was.balance, paidOut],
    ] as const) {
      demand(due === null || due === shown, 18, `${key} is ${shown}, the links come to ${due ?? 0n}`);
    }
    demand(bought - staked + returned === paidOut, 18, `${bought} - ${staked} + ${returned} is not ${paidOut}`);
  }

  private checkRounds(body: JsonObject, sums: Sums): void {
    const rounds = whole(body, "rounds");
    demand(sums.rounds === null || rounds === sums.rounds, 7, `${rounds} rounds, the links show ${sums.rounds ?? 0n}`);
  }

  close({ body }: Statement, session: Session): void {
    session.isClosed = true;
    this.checkRounds(body, session.sums);
    const owed = session.isSeamless === true && session.sums.balance !== null ? session.sums.balance : 0n;
    demand(owed === 0n, 18, `${owed} was not credited`);
  }

  transfer({ body }: Statement, session: Session): void {
    const { sums, stage, opening } = session;
    const [amount, round] = [whole(body, "amount_minor"), text(body, "round_id")];
    const isDebit = text(body, "direction") === "debit";
    const was = sums.balance;
    const { transferRound, stageBefore } = session;
    session.isSeamless ??= true;
    session.transferRound = round;
    if (sums.balance !== null) sums.balance = isDebit ? sums.balance + amount : sums.balance > amount ? sums.balance - amount : 0n;
    if (isDebit && sums.bought !== null) sums.bought += amount;
    if (isDebit && opening && session.debits !== null) session.debits += amount;
    if (opening) {
      demand(isDebit && round === opening.round, 7, "a transfer within a round that is no debit for it");
    } else if (!isDebit) {
      const isBehind = stageBefore === "round_final" || stageBefore === "";
      demand(isBehind && (transferRound === "" || round === transferRound), 7, "a credit that is not for the round before it");
    }
    demand(!isDebit || amount > 0n, 18, "a debit of nothing");
    if (stage === "transfer before") demand(was === null || was === 0n, 18, `${was ?? 0n} of the round before was not credited`);
    if (stage === "transfer behind") demand(was === null || amount === was, 18, `a credit of ${amount}, ${was ?? 0n} are owed`);
  }

  /** Whether the files promise more of a session than they hold. */
  isShort({ id, link, isClosed }: Session): boolean {
    if (!this.scopes.isCut) return !isClosed;
    return (this.scopes.sessions.get(id) ?? []).some((range) => range.last > link);
  }

  /** Check 22 at the end of the files. */
  *finish(): Generator<Fault> {
    for (const id of this.scopes.sessions.keys()) {
      if (!this.all.has(id)) yield new Fault(22, `the scope promises the session ${id}, of which nothing is here`);
    }
    for (const session of this.all.values()) {
      const { link, id } = session;
      const range = (this.scopes.sessions.get(id) ?? []).find((one) => one.last > link);
      if (range) yield new Fault(22, `the range of session ${id} ends at ${range.last}, the files at ${link}`);
      if (!this.scopes.isCut && !session.isClosed) yield new Fault(22, `session ${id} ends at ${link} without its end`);
    }
  }
}

/** The currency of a session; "" where the files begin later. */
export function currencyOf({ open }: Session): string {
  return open ? text(open, "currency") : "";
}

/** What a link is among the links of its session. */
function stageOf(kind: string, session: Session, body: JsonObject): string {
  if (kind === "transfer") return transferStage(session, body);
  if (kind === "free_bet") return freeBetStage(body);
  return isFinal(kind) && session.freeBet ? "free final" : kind;
}

function transferStage(session: Session, body: JsonObject): string {
  if (text(body, "direction") === "credit") return "transfer behind";
  return session.opening ? "transfer within" : "transfer before";
}

export function isOpening(kind: string): boolean {
  return OPENINGS.has(kind);
}

export function isFinal(kind: string): boolean {
  return FINALS.has(kind);
}

function unknownSums(): Sums {
  return { balance: null, bought: null, staked: null, returned: null, purchases: null, rounds: null };
}

function zeroSums(): Sums {
  return { balance: 0n, bought: 0n, staked: 0n, returned: 0n, purchases: 0n, rounds: 0n };
}

/** The earliest time at which this session's rounds may begin is not checked without its opening. */
export function openedAt(session: Session): number | null {
  return session.open ? at(session.open, "time") : null;
}
