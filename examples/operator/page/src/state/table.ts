/** A session at a table: the whole bet is stated each time, decisions fall in the table's windows. */

import { EMPTY, isEmpty } from "../model/betting.js";
import { takesBets } from "../model/light.js";
import { isOlder, isOver } from "../model/rules.js";
import { amountsOf, toState } from "../model/stating.js";
import { bare, type ChatLine, type RoundView, type SeatView, type TableView } from "../model/types.js";
import { Play, type Views } from "./play.js";

const LINES_KEPT = 100;

export class TablePlay extends Play {
  table: TableView | undefined;
  seat: SeatView | undefined;
  lines: ChatLine[] = [];
  unread = 0;
  /** A statement of bets is under way. */
  isStating = false;
  /** The document was hidden (F-8): open bets are being taken back, and none is placed meanwhile. */
  takingBack = false;
  private dealt = "";

  get tableId(): string {
    return this.session.table ?? this.entry?.table ?? "";
  }

  get name(): string {
    return this.entry?.names?.[this.store.language] ?? this.entry?.names?.["en"] ?? this.session.game_name ?? this.tableId;
  }

  /** Each player has cards of its own, in a box. */
  get hasBoxes(): boolean {
    return (this.entry?.boxes ?? 0) > 0;
  }

  get seated(): boolean {
    return this.seat !== undefined && !this.seat.ended;
  }

  get round(): RoundView | undefined {
    const round = this.seat?.round;
    return round && round.round_id === this.shownRoundId ? round : undefined;
  }

  /** The player's round, if a decision of it is open now. */
  get open(): RoundView | undefined {
    const { round } = this;
    return round && !isOver(round) ? round : undefined;
  }

  get bettingOpen(): boolean {
    return this.isOpenHere && !this.takingBack;
  }

  private get isOpenHere(): boolean {
    return this.seated && !this.takenOver && !!this.table && takesBets(this.table, this.store.clock);
  }

  private get shownRoundId(): string | undefined {
    const state = bare(this.table?.state, "TABLE_STATE_");
    return state === "BETTING" || state === "IDLE" ? undefined : this.table?.round_id;
  }

  override take(views: Views): void {
    super.take(views);
    if (views.table) this.takeTable(views.table);
    if (views.seat) this.takeSeat(views.seat);
  }

  takeTable(table: TableView): void {
    if (this.table && this.table.table === table.table && BigInt(table.version ?? 0) < BigInt(this.table.version ?? 0)) return;
    const was = this.table;
    this.table = table;
    if (was?.state !== table.state || was?.phase !== table.phase) this.store.tellTable(this, table, was);
    // The first bet at an idle table opens the window: it lies there already.
    const begun = was && was.state !== table.state && was.state !== "TABLE_STATE_IDLE";
    if (begun && bare(table.state, "TABLE_STATE_") === "BETTING") this.slip = EMPTY;
    this.startProof();
  }

  takeSeat(seat: SeatView): void {
    const was = this.seat;
    if (isOlder(seat.round, was?.round)) return;
    if (this.joining && !seat.ended) this.keepDevice(seat.device_no ?? 0);
    // The number that this page got when it sat down: another one is another device's (T-3).
    this.takenOver = !seat.ended && (seat.device_no ?? 0) !== this.device;
    this.seat = seat;
    if (seat.round && Object.keys(amountsOf(seat.round.bets, this.rules)).length) {
      this.previous = amountsOf(seat.round.bets, this.rules);
    }
    // At red the table decides what stands; before it what was stated last is shown.
    if (!this.isOpenHere) this.slip = EMPTY;
    else if (!this.isStating && was?.seat_version !== seat.seat_version && this.slip.past.length === 0) {
      this.slip = { amounts: amountsOf(seat.bets, this.rules), past: [] };
    }
    this.hasSat ||= this.seated;
    const { round } = seat;
    if (round && (was?.round?.round_id !== round.round_id || was.round.round_version !== round.round_version)) {
      this.store.tellRound(this, round, was?.round);
    }
    this.startProof();
  }

  takeLine(line: ChatLine): void {
    if (this.lines.some((each) => each.message_id === line.message_id)) {
      this.lines = this.lines.map((each) => (each.message_id === line.message_id ? line : each));
      return;
    }
    this.lines = [...this.lines, line].slice(-LINES_KEPT);
    if (!line.is_own && !line.code) this.unread += 1;
    if (line.code) this.store.tellDealer(this, line.code);
  }

  private joining = false;

  /** The device number of this page at the table; it outlives a reload, and no other tab has it. */
  private get device(): number {
    return Number(sessionStorage.getItem(`device.${this.id}`) ?? -1);
  }

  private keepDevice(number: number): void {
    sessionStorage.setItem(`device.${this.id}`, String(number));
  }

  /** It has sat here since the page was opened: losing the seat is worth a word. */
  hasSat = false;

  /** Sits down, at a box where there are boxes; also to take the seat back from another device. */
  async join(box = 0): Promise<void> {
    this.joining = true;
    if (await this.ask("join", { session_id: this.id, box })) {
      this.slip = { amounts: amountsOf(this.seat?.bets, this.rules), past: [] };
    }
    this.joining = false;
    this.store.emit();
  }

  async leave(): Promise<boolean> {
    if (!this.seated || this.takenOver) return true;
    return this.ask("leave", { session_id: this.id, device_no: this.device });
  }

  async decide(action: string): Promise<void> {
    const { open } = this;
    if (!open || this.takenOver) return;
    const { round_id, round_version = "1" } = open;
    const device_no = this.device;
    if (await this.ask("decide", { session_id: this.id, device_no, round_id, round_version, action })) {
      this.store.sound.chip();
    }
  }

  async say(text: string): Promise<boolean> {
    try {
      this.takeLine((await this.store.link.request("say", { session_id: this.id, text })) as ChatLine);
      return true;
    } catch (error) {
      this.refused(error);
      return false;
    } finally {
      this.store.emit();
    }
  }

  /** The player has bets here that are still open: hiding the document takes them back (F-8). */
  get mayBeTakenBack(): boolean {
    return !this.takingBack && (this.hasOpenBets || (this.isOpenHere && (this.isStating || !isEmpty(this.slip))));
  }

  /** The table itself has open bets of this seat. */
  get hasOpenBets(): boolean {
    const { state, paused_from } = this.table ?? {};
    const isOpen = [state, paused_from].some((each) => bare(each, "TABLE_STATE_") === "BETTING");
    return isOpen && this.seated && !this.takenOver && (this.seat?.bets?.length ?? 0) > 0;
  }

  /** No bets are open any more: the felt shows what the table has. */
  tookBack(): void {
    this.takingBack = false;
    this.slip = this.bettingOpen ? { amounts: amountsOf(this.seat?.bets, this.rules), past: [] } : EMPTY;
  }

  protected changed(): void {
    void this.state();
  }

  /** Tells the table the whole bet until it has what lies on the felt. */
  private async state(): Promise<void> {
    if (this.isStating) return;
    this.isStating = true;
    try {
      let told = "";
      for (let bets = this.due(); bets && JSON.stringify(bets) !== told; bets = this.due()) {
        told = JSON.stringify(bets);
        const answer = await this.store.link.request("bets", {
          session_id: this.id,
          device_no: this.device,
          round_id: this.table?.round_id ?? "",
          seat_version: this.seat?.seat_version ?? "0",
          bets,
        });
        this.take(answer as Views);
        this.store.emit();
      }
    } catch (error) {
      this.slip = { amounts: amountsOf(this.seat?.bets, this.rules), past: [] };
      this.refused(error);
    } finally {
      this.isStating = false;
      this.store.emit();
    }
  }

  private due(): { bet: string; amount_minor: string }[] | undefined {
    return this.bettingOpen ? toState(this.slip, this.seat?.bets, this.rules, this.balance) : undefined;
  }

  /** Whether the felt shows something else than what the table has. */
  get unstated(): boolean {
    return this.bettingOpen && (this.isStating || toState(this.slip, this.seat?.bets, this.rules, this.balance) !== undefined);
  }

  private startProof(): void {
    const { round } = this;
    const finished = bare(this.table?.state, "TABLE_STATE_") === "RESULT";
    if (!round || !isOver(round) || !finished || this.dealt === round.round_id) return;
    this.dealt = round.round_id;
    this.store.proofs.start(this, round);
  }
}
