/** One session of the page: its money, its bets before the deal, and what it was last told. */

import {
  amountOf,
  check,
  clear,
  double,
  EMPTY,
  isEmpty,
  isLive,
  place,
  rackOf,
  remove,
  repeat,
  setBet,
  totalOf,
  undo,
  type Amounts,
  type BetRule,
  type Placed,
  type Refusal,
  type Slip,
} from "../model/betting.js";
import { RequestError } from "../model/connection.js";
import { mayRepeat } from "../model/jurisdiction.js";
import { balanceOf, betRules, isEarlier } from "../model/rules.js";
import { int, type Game, type RoundView, type SessionView, type TableEntry } from "../model/types.js";
import type { Store } from "./store.js";

/** The page has an older view than the server: it asks for a fresh one. */
const STALE = new Set([
  ...["ROUND_CHANGED", "SESSION_CHANGED", "TABLE_CHANGED", "TABLE_STATE", "NUMBER_NOT_EXPECTED", "ROUND_NOT_OPEN"],
  ...["ROUND_OPEN", "SESSION_CLOSED", "NOT_SEATED"],
]);

/** What stands in the message line of a table: it says the number and, where it can, offers the amount that fits. */
export interface Note {
  text: string;
  remedy?: { bet: string; amount: bigint };
}

export abstract class Play {
  slip: Slip = EMPTY;
  chip: bigint;
  /** The bets of the last round, for repeat. */
  previous: Amounts = {};
  note: Note | undefined;
  /** A request is under way: its buttons wait. */
  busy = false;
  /** Someone else has this seat or session now. */
  takenOver = false;
  /** The game's rules of the bets, or the table's. */
  protected readonly gameRules: BetRule[];
  readonly chips: bigint[];
  private seenAt = 0;

  constructor(
    readonly store: Store,
    public session: SessionView,
    readonly game: Game,
    readonly entry?: TableEntry,
  ) {
    this.gameRules = betRules(game, entry);
    this.chips = rackOf(this.gameRules);
    this.chip = this.chips[Math.min(2, this.chips.length - 1)] ?? 0n;
    this.seen(session);
  }

  /** The rules that hold for the bets on the felt. */
  get rules(): BetRule[] {
    return this.gameRules;
  }

  get id(): string {
    return this.session.session_id;
  }

  get currency(): string {
    return this.session.currency ?? this.game.currency ?? "EUR";
  }

  /** What can be staked: the balance of the participation or of the wallet. Bets reserved at a table are part of it. */
  get balance(): bigint {
    return balanceOf(this.session);
  }

  get total(): bigint {
    return totalOf(this.slip.amounts, this.rules);
  }

  /** What the balance shows while bets are being placed. */
  get left(): bigint {
    return this.bettingOpen ? this.balance - this.total : this.balance;
  }

  get needsParticipation(): boolean {
    return this.session.funding !== "FUNDING_SEAMLESS" && !this.session.participation_id;
  }

  get ended(): boolean {
    return this.session.status === "SESSION_STATUS_CLOSED" || (this.session.participation_ended ?? false);
  }

  /** The session's time, going on since it was last told. */
  get elapsedMs(): number {
    return Number(int(this.session.elapsed_ms)) + (this.ended ? 0 : performance.now() - this.seenAt);
  }

  abstract get bettingOpen(): boolean;
  abstract get round(): RoundView | undefined;
  /** Bets were changed: a table has to be told. */
  protected abstract changed(): void;

  seen(session: SessionView | undefined): void {
    // An answer may come behind what was pushed after it.
    if (!session || isEarlier(session, this.session)) return;
    this.session = session;
    this.seenAt = performance.now();
  }

  // --- placing (F-1, F-2, F-4) ---

  pick(index: number): void {
    const chip = this.chips[index];
    if (chip === undefined || !isLive(chip, this.slip, this.rules, this.balance)) return;
    this.chip = chip;
    this.store.emit();
  }

  place(bet: string, chip: bigint = this.chip): void {
    this.apply((slip) => place(slip, this.rules, bet, chip, this.balance));
  }

  /** A drop or a typed amount: the bet becomes exactly this. */
  set(bet: string, amount: bigint): void {
    this.apply((slip) => setBet(slip, this.rules, bet, amount, this.balance));
  }

  double(): void {
    this.apply((slip) => double(slip, this.rules, this.balance));
  }

  repeat(): void {
    if (!this.mayRepeat) return;
    this.apply((slip) => repeat(slip, this.rules, this.previous, this.balance));
  }

  undo(): void {
    this.apply(undo);
  }

  clear(): void {
    this.apply(clear);
  }

  remove(bet: string): void {
    this.apply((slip) => remove(slip, this.rules, bet, this.chip));
  }

  /** Space: the last bets, and once they lie there twice as much. */
  space(): void {
    if (isEmpty(this.slip)) this.repeat();
    else this.double();
  }

  get mayRepeat(): boolean {
    return (
      isEmpty(this.slip) &&
      mayRepeat(this.store.jurisdiction) &&
      Object.values(this.previous).some((amount) => amount > 0n)
    );
  }

  get refusal(): Refusal | undefined {
    return check(this.slip, this.rules, this.balance);
  }

  rule(bet: string): BetRule | undefined {
    return this.rules.find((rule) => rule.bet === bet);
  }

  amount(bet: string): bigint {
    return amountOf(this.slip.amounts, bet);
  }

  /** A side bet can be placed now: its spot blinks (F-10). */
  blinks(bet: string): boolean {
    const rule = this.rule(bet);
    const ante = this.rules.find((each) => each.required);
    if (!this.bettingOpen || !rule || rule.required || !ante) return false;
    return this.amount(ante.bet) >= ante.min && this.amount(bet) === 0n;
  }

  private apply(change: (slip: Slip) => Placed): void {
    if (!this.bettingOpen || this.takenOver) return;
    this.beforePlacing();
    const { slip, refusal } = change(this.slip);
    const moved = slip !== this.slip;
    this.slip = slip;
    this.note = refusal ? this.store.refusalNote(refusal, this) : undefined;
    if (moved) {
      this.store.sound.chip();
      this.changed();
    }
    if (this.note) this.store.announce(this.note.text);
    this.store.emit();
  }

  protected beforePlacing(): void {}

  // --- money ---

  async buy(amount: bigint): Promise<boolean> {
    return this.ask("buy", {
      session_id: this.id,
      purchase_no: this.session.next_purchase_no ?? "1",
      amount_minor: amount.toString(),
    });
  }

  /** Gives the balance back and closes the session. */
  async close(): Promise<boolean> {
    if (!this.needsParticipation && this.session.funding !== "FUNDING_SEAMLESS" && !this.session.participation_ended) {
      if (!(await this.ask("end", { session_id: this.id }))) return false;
    }
    return this.ask("close", { session_id: this.id });
  }

  /** Asks the bridge; takes the views of the answer, or puts the refusal into the message line. */
  protected async ask(type: string, fields: Record<string, unknown>): Promise<boolean> {
    if (this.busy) return false;
    this.busy = true;
    this.note = undefined;
    this.store.emit();
    try {
      this.take((await this.store.link.request(type, fields)) as Views);
      return true;
    } catch (error) {
      this.refused(error);
      return false;
    } finally {
      this.busy = false;
      this.store.emit();
    }
  }

  protected refused(error: unknown): void {
    if (!(error instanceof RequestError)) throw error;
    if (error.reason === "DEVICE_REPLACED") this.takenOver = true;
    if (error.value) this.take(error.value as Views);
    if (STALE.has(error.reason)) void this.refresh();
    this.note = { text: this.store.errorWords(error, this.currency) };
    this.store.announce(this.note.text);
  }

  /** Takes the whole session again. RequestError. */
  async read(): Promise<void> {
    this.take((await this.store.link.request("get", { session_id: this.id })) as Views);
  }

  /** Takes the whole session again, if the bridge answers. */
  async refresh(): Promise<void> {
    try {
      await this.read();
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
    }
    this.store.emit();
  }

  /** Views of an answer or a push. */
  take(views: Views): void {
    this.seen(views.session);
  }
}

export interface Views {
  session?: SessionView;
  round?: RoundView;
  table?: import("../model/types.js").TableView;
  seat?: import("../model/types.js").SeatView;
  opening?: string;
  final?: string;
}
