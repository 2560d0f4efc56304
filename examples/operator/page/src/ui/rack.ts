/** The chip rack and the buttons of betting, in the bar that is always in the same place. */

import { css, html, nothing, type TemplateResult } from "lit";

import { isEmpty, isLive } from "../model/betting.js";
import { mayRepeat } from "../model/jurisdiction.js";
import { formatChip } from "../model/money.js";
import type { Play } from "../state/play.js";
import { SoloPlay } from "../state/solo.js";
import { int } from "../model/types.js";
import { chipFace, chipStyles } from "./chips.js";
import { define, shared, StoreElement } from "./base.js";

/** Held so long, undo clears all bets. */
const HOLD_MS = 700;
const PACE_TICK_MS = 250;

export class RackElement extends StoreElement {
  static override properties = { ...StoreElement.properties, play: { attribute: false } };
  play!: Play;
  private hold = 0;
  private held = false;
  private pace = 0;

  static override styles = [
    shared,
    chipStyles,
    css`
      :host {
        display: grid;
        gap: 0.5rem;
        justify-items: center;
      }
      .rack {
        display: flex;
        gap: 0.3rem;
        justify-content: center;
        max-width: 100%;
      }
      .rack button {
        flex: 0 1 3.25rem;
        min-width: 2.25rem;
        min-height: 0;
        aspect-ratio: 1;
        padding: 0;
        border: 3px solid transparent;
        border-radius: 50%;
        background: transparent;
      }
      .rack button[aria-pressed="true"] {
        border-color: var(--ink);
        transform: translateY(-0.2rem);
      }
      .rack button:disabled {
        opacity: 0.35;
        border-style: dotted;
      }
      .row {
        justify-content: center;
      }
      .row button {
        flex: 0 1 auto;
      }
      .deal {
        min-width: 7.5rem;
      }
      /* Three or four tables on a screen: chips and buttons in one row. */
      @media (min-width: 70rem) {
        :host([dense]) {
          grid-auto-flow: column;
          justify-content: center;
          align-items: center;
        }
        :host([dense]) .row {
          flex-wrap: nowrap;
        }
      }
      @media (max-width: 30rem) {
        .row {
          gap: 0.35rem;
        }
        .row button {
          flex: 1 1 auto;
          padding: 0.3rem 0.5rem;
        }
      }
    `,
  ];

  protected override render(): unknown {
    const { play } = this;
    this.toggleAttribute("dense", this.store.tables.length > 2);
    return html`<div class="rack" role="group" aria-label=${this.t("rack.label")}>
        ${play.chips.map((chip, index) => this.chip(chip, index))}
      </div>
      ${play instanceof SoloPlay ? this.freeBets(play) : nothing}
      <div class="row">
        <button
          data-does="undo"
          title=${this.t("rack.undo_hint")}
          ?disabled=${!play.bettingOpen || play.slip.past.length === 0}
          @pointerdown=${() => this.press()}
          @pointerup=${() => window.clearTimeout(this.hold)}
          @pointerleave=${() => window.clearTimeout(this.hold)}
          @click=${() => this.release()}
        >
          ${this.t("rack.undo")}
        </button>
        ${play instanceof SoloPlay && play.isHoldem
          ? html`<button data-does="clear" ?disabled=${!play.bettingOpen || isEmpty(play.slip)} @click=${() => play.clear()}>
              ${this.t("rack.clear")}
            </button>`
          : nothing}
        <button data-does="double" ?disabled=${!play.bettingOpen || isEmpty(play.slip)} @click=${() => play.double()}
          aria-label=${this.t("rack.double_label")}>2×</button>
        ${this.repeat()} ${play instanceof SoloPlay ? this.deal(play) : nothing}
      </div>`;
  }

  /** While the jurisdiction's pace holds the next round back, one timer counts the seconds. */
  protected override updated(): void {
    if (!(this.play instanceof SoloPlay) || this.play.waitMs === 0) return;
    this.pace ||= window.setTimeout(() => {
      this.pace = 0;
      this.requestUpdate();
    }, PACE_TICK_MS);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    window.clearTimeout(this.pace);
    this.pace = 0;
  }

  /** The free bets that can be played here. One on the felt is taken back by the same button. */
  private freeBets(play: SoloPlay): TemplateResult | typeof nothing {
    const { freeBets } = play;
    if (!freeBets.length) return nothing;
    return html`<div class="row" role="group" aria-label=${this.t("free_bet.label")}>
      ${freeBets.map((each) => {
        const isOn = play.freeBet?.stake_minor === each.stake_minor;
        const amount = this.store.money(int(each.stake_minor), play.currency);
        return html`<button
          data-does="free-bet"
          aria-pressed=${isOn}
          ?disabled=${!play.bettingOpen}
          @click=${() => play.useFreeBet(isOn ? undefined : each)}
        >
          ${this.t(isOn ? "free_bet.take_back" : "free_bet.use", { amount })}
        </button>`;
      })}
    </div>`;
  }

  private chip(chip: bigint, index: number): TemplateResult {
    const { play } = this;
    const live = isLive(chip, play.slip, play.rules, play.balance);
    return html`<button
      data-chip=${chip}
      aria-pressed=${play.chip === chip}
      aria-label=${this.t("rack.chip", { amount: this.store.money(chip, play.currency) })}
      title=${this.t("rack.key", { key: index + 1 })}
      ?disabled=${!live}
      @click=${() => play.pick(index)}
    >
      ${chipFace(formatChip(chip, this.store.exponent(play.currency), this.store.language), index)}
    </button>`;
  }

  private repeat(): TemplateResult | typeof nothing {
    const { play } = this;
    if (!mayRepeat(this.store.jurisdiction)) return nothing;
    const deals = play instanceof SoloPlay && play.isHoldem;
    return html`<button
      data-does="repeat"
      ?disabled=${!play.bettingOpen || !play.mayRepeat}
      @click=${() => (deals ? void (play as SoloPlay).repeatAndDeal() : play.repeat())}
    >
      ${this.t(deals ? "rack.repeat_deal" : "rack.repeat")}
    </button>`;
  }

  private deal(play: SoloPlay): TemplateResult {
    const wait = Math.ceil(play.waitMs / 1000);
    if (play.isHoldem && play.round && isEmpty(play.slip)) {
      return html`<button class="primary deal" data-does="new" @click=${() => play.fresh()}>${this.t("rack.new_game")}</button>`;
    }
    if (wait > 0) {
      return html`<button class="primary deal" disabled>${this.t("rack.wait", { seconds: wait })}</button>`;
    }
    const own = this.store.money(play.total, play.currency);
    const free = play.total > 0n ? this.t("free_bet.deal_and", { amount: own }) : this.t("free_bet.deal");
    const text = play.freeBet ? free : play.total > 0n ? this.t("rack.deal_for", { amount: own }) : this.t("rack.deal");
    return html`<button class="primary deal" data-does="deal" ?disabled=${play.busy || isEmpty(play.slip)} @click=${() => play.deal()}>${text}</button>`;
  }

  private press(): void {
    this.held = false;
    this.hold = window.setTimeout(() => {
      this.held = true;
      this.play.clear();
    }, HOLD_MS);
  }

  private release(): void {
    window.clearTimeout(this.hold);
    if (!this.held) this.play.undo();
    this.held = false;
  }
}

define("rgs-rack", RackElement);
