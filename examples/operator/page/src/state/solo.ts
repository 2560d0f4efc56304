/** A session for one player: deal, decide, see the result, bet again. */

import { betsOf, EMPTY, type BetRule } from "../model/betting.js";
import { RequestError } from "../model/connection.js";
import { HOLDEM, isOlder, isOver } from "../model/rules.js";
import { amountsOf } from "../model/stating.js";
import { int, type FreeBet, type RoundView, type SessionView } from "../model/types.js";
import { Play, type Views } from "./play.js";

export class SoloPlay extends Play {
  private shown: RoundView | undefined;
  /** It pays the ante on the felt, and the blind beside it. */
  freeBet: FreeBet | undefined;

  /** A free bet fixes the ante at its stake, and takes nothing of the balance for it. */
  override get rules(): BetRule[] {
    if (!this.freeBet) return this.gameRules;
    const stake = int(this.freeBet.stake_minor);
    return this.gameRules.map((rule) => (rule.required ? { ...rule, min: stake, max: stake, times: 0n } : rule));
  }

  /** The free bets that can be played here, the oldest of each stake. */
  get freeBets(): FreeBet[] {
    if (this.session.funding === "FUNDING_SEAMLESS" || this.session.mode === "MODE_DEMO") return [];
    const found = this.store.freeBets.of(this.game.ruleset.id).filter((each) => each.currency === this.currency);
    return found.filter((each, at) => found.findIndex((other) => other.stake_minor === each.stake_minor) === at);
  }

  /** Lays a free bet on the felt in the place of all bets, or takes it back. */
  useFreeBet(freeBet: FreeBet | undefined): void {
    const ante = this.gameRules.find((rule) => rule.required);
    if (!this.bettingOpen || this.takenOver || !ante) return;
    this.beforePlacing();
    this.note = undefined;
    this.freeBet = freeBet;
    this.slip = freeBet ? { amounts: { [ante.bet]: int(freeBet.stake_minor) }, past: [] } : EMPTY;
    this.store.sound.chip();
    this.store.emit();
  }

  get round(): RoundView | undefined {
    return this.shown;
  }

  /** A round that waits for a decision, or for the end of a pause. */
  get open(): RoundView | undefined {
    return this.shown && !isOver(this.shown) ? this.shown : undefined;
  }

  get bettingOpen(): boolean {
    return !this.open && !this.needsParticipation && !this.ended && !this.busy;
  }

  get isHoldem(): boolean {
    return this.game.family === HOLDEM;
  }

  /** Milliseconds until the jurisdiction's pace lets the next round start. */
  get waitMs(): number {
    return this.store.clock.left(this.session.next_start_time) ?? 0;
  }

  override seen(session: SessionView | undefined): void {
    super.seen(session);
    if (session?.open_round) this.show(session.open_round);
  }

  override take(views: Views): void {
    super.take(views);
    if (views.round) this.show(views.round);
  }

  /** The round ended while the page was away, or another device plays: asks for it whole. */
  override async refresh(): Promise<void> {
    await super.refresh();
    const { open } = this;
    if (!open) return;
    try {
      this.take((await this.store.link.request("round", { session_id: this.id, round_id: open.round_id })) as Views);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
    }
    this.store.emit();
  }

  async deal(): Promise<void> {
    const { refusal } = this;
    if (refusal) {
      this.note = this.store.refusalNote(refusal, this);
      this.store.announce(this.note.text);
      this.store.emit();
      return;
    }
    if (this.open || this.busy || this.waitMs > 0 || this.store.realityChecks.shown) return;
    const bets = betsOf(this.slip.amounts);
    const round_no = this.session.next_round_no ?? "1";
    const { freeBet } = this;
    const paid = freeBet ? { free_bet: freeBet.grant_id } : {};
    if (await this.ask("start", { session_id: this.id, round_no, bets, ...paid })) this.store.sound.card();
    // Played, or refused because it is not there any more.
    if (freeBet) await this.store.freeBets.load();
  }

  async act(action: string): Promise<void> {
    const { open } = this;
    if (!open || open.paused) return;
    const { round_id, round_version = "1" } = open;
    if (await this.ask("act", { session_id: this.id, round_id, round_version, action })) this.store.sound.card();
  }

  /** The felt is cleared for new bets. */
  fresh(): void {
    if (this.open) return;
    this.shown = undefined;
    this.note = undefined;
    this.store.emit();
  }

  /** Casino Hold'em's repeat: the last bets again, dealt at once (F-5). */
  async repeatAndDeal(): Promise<void> {
    this.repeat();
    if (!this.note) await this.deal();
  }

  /** The ante of the free bet was taken back, or a part of it: nothing may make it a bet of the player's. */
  protected changed(): void {
    if (!this.freeBet || this.rules.every((rule) => !rule.required || this.amount(rule.bet) === rule.min)) return;
    this.freeBet = undefined;
    this.slip = EMPTY;
  }

  protected override beforePlacing(): void {
    this.shown = undefined;
  }

  private show(round: RoundView): void {
    const was = this.shown;
    if (isOlder(round, was)) return;
    this.shown = round;
    const bets = amountsOf(round.bets, this.rules);
    // To repeat a free bet would take the player's own money.
    if (Object.keys(bets).length && !round.grant_id) this.previous = bets;
    this.slip = EMPTY;
    this.freeBet = undefined;
    if (was?.round_id !== round.round_id || was.round_version !== round.round_version) {
      this.store.tellRound(this, round, was);
    }
    if (isOver(round) && (was?.round_id !== round.round_id || !isOver(was))) {
      this.store.proofs.start(this, round);
    }
  }
}
