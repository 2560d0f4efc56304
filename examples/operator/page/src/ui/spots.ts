/** The spots of the felt: buttons where the player places bets, and plates for what the system or a decision places. */

import { css, html, nothing, type TemplateResult } from "lit";

import { formatChip } from "../model/money.js";
import { spotsOf } from "../model/rules.js";
import { labelOf, textOf } from "../model/texts.js";
import { int, type SettledBet } from "../model/types.js";
import type { Play } from "../state/play.js";
import { chipFace, chipStyles, indexFor } from "./chips.js";
import { define, shared, StoreElement } from "./base.js";
import { feltTexts } from "./felt-texts.js";

export class SpotsElement extends StoreElement {
  static override properties = { ...StoreElement.properties, play: { attribute: false } };
  play!: Play;

  static override styles = [
    shared,
    chipStyles,
    css`
      :host {
        display: flex;
        justify-content: center;
        gap: 0.4rem;
        flex-wrap: nowrap;
      }
      /* Name, limits, chips, amount, and what came of it: all have their place before they are there. */
      .spot {
        display: grid;
        grid-template-rows: 1.2em 1em 2.4rem 1.2em 1.2em;
        justify-items: center;
        align-content: start;
        gap: 0.08rem;
        flex: 1 1 0;
        max-width: 7.5rem;
        min-width: 0;
        min-height: 0;
        padding: 0.25rem 0.1rem;
        color: #fff;
        background: rgb(0 0 0 / 0.22);
        border: 2px solid rgb(255 255 255 / 0.55);
        border-radius: 0.75rem;
        font-size: 0.8125rem;
        font-weight: 400;
        line-height: 1.2;
      }
      button.spot:disabled {
        color: #fff;
        background: rgb(0 0 0 / 0.22);
        border-style: solid;
        cursor: default;
      }
      @container (min-width: 56rem) {
        .spot {
          grid-template-rows: 1.3em 1.1em 3.6rem 1.3em 1.3em;
          max-width: 9rem;
          font-size: 0.9375rem !important;
        }
        .chips {
          width: 3.6rem !important;
          height: 3.6rem !important;
        }
      }
      /* Three or four tables on a screen. */
      @media (min-width: 70rem) {
        :host([dense]) .spot {
          grid-template-rows: 1.1em 1em 1.5rem 1.1em;
          grid-template-columns: minmax(0, 1fr);
          padding: 0.05rem;
          font-size: 0.75rem;
          line-height: 1.1;
        }
        :host([dense]) .chips {
          width: 1.5rem;
          height: 1.5rem;
        }
        :host([dense]) .settled .stake {
          display: none;
        }
      }
      .plate {
        border-style: dotted;
      }
      .name {
        font-weight: 700;
        max-width: 100%;
        overflow: hidden;
        text-overflow: ellipsis;
        white-space: nowrap;
      }
      .name.long {
        font-size: 0.625rem;
        line-height: 1.5;
      }
      .chips {
        width: 2.4rem;
        height: 2.4rem;
      }
      @container (max-height: 28rem) and (max-width: 37.9rem) {
        .spot {
          grid-template-rows: 1.2em 1em 2rem 1.2em 1.2em;
          padding-block: 0.1rem;
        }
        .chips {
          width: 2rem;
          height: 2rem;
        }
      }
      .amount {
        font-weight: 700;
        font-variant-numeric: tabular-nums;
      }
      .limits {
        font-size: 0.6875rem;
        line-height: 1.1;
        white-space: nowrap;
        font-variant-numeric: tabular-nums;
        color: #d8e6e0;
      }
      .blinks {
        position: relative;
        border-color: #ffd54a;
      }
      /* Only its opacity changes: the browser blends what is painted once. */
      .blinks::after {
        content: "";
        position: absolute;
        inset: 0;
        border-radius: 0.6rem;
        background: rgb(255 213 74 / 0.3);
        pointer-events: none;
        animation: blink 1.2s ease-in-out infinite;
      }
      @keyframes blink {
        50% {
          opacity: 0;
        }
      }
      .spot.win,
      button.spot.win:disabled {
        border-color: #ffd54a;
        border-style: double;
        border-width: 4px;
      }
      :host([still]) .blinks {
        outline: 2px dashed #ffd54a;
      }
      :host([still]) .blinks::after {
        display: none;
      }
      @media (prefers-reduced-motion: reduce) {
        .blinks {
          outline: 2px dashed #ffd54a;
        }
        .blinks::after {
          display: none;
        }
      }
    `,
  ];

  protected override render(): unknown {
    return spotsOf(this.play.game).map((bet) => this.spot(bet));
  }

  private spot(bet: string): TemplateResult {
    const { play } = this;
    const rule = play.rule(bet);
    const settled = play.total ? undefined : play.round?.settlement?.find((each) => each.bet === bet);
    const amount = this.amount(bet);
    const { texts } = feltTexts(this.store, play.game);
    const name = labelOf(texts, play.game.ruleset.id, "bets", bet);
    const inside = html`<span class="name ${name.length > 14 ? "long" : ""}">${name}</span>
      <span class="limits">${rule ? this.limits(rule.min, rule.max) : nothing}</span>
      <span class="chips">${amount > 0n ? chipFace(this.face(amount), indexFor(amount, play.chips)) : nothing}</span>
      <span class="amount stake">${amount > 0n ? this.money(amount) : nothing}</span>
      ${settled ? html`<span class="amount">${this.settled(settled)}</span>` : nothing}`;
    const win = settled?.result === "BET_RESULT_WIN" ? "win" : "";
    if (!rule) return html`<div class="spot plate ${win} ${settled ? "settled" : ""}" data-spot=${bet}>${inside}</div>`;
    return html`<button
      class="spot ${win} ${settled ? "settled" : ""} ${play.blinks(bet) ? "blinks" : ""}"
      data-spot=${bet}
      title=${this.limits(rule.min, rule.max)}
      aria-label=${this.t("spot.label", { bet: name, amount: this.money(amount), limits: this.limits(rule.min, rule.max) })}
      ?disabled=${!play.bettingOpen}
      @click=${() => play.place(bet)}
      @contextmenu=${(event: Event) => {
        event.preventDefault();
        play.remove(bet);
      }}
      @keydown=${(event: KeyboardEvent) => {
        if (event.key === "-" || event.key === "Backspace") play.remove(bet);
      }}
    >
      ${inside}
    </button>`;
  }

  /** On the felt before the deal; then what the round has on the bet. */
  private amount(bet: string): bigint {
    const { play } = this;
    const { round } = play;
    if (play.total > 0n || !round) {
      if (play.rule(bet)) return play.amount(bet);
      return bet === "blind" ? play.amount("ante") : 0n;
    }
    const placed = round.bets?.find((each) => each.bet === bet);
    if (placed) return int(placed.amount_minor);
    return int(round.settlement?.find((each) => each.bet === bet)?.stake_minor);
  }

  private settled(settled: SettledBet): string {
    const word = textOf(this.store.texts, this.play.game.ruleset.id, "results", settled.result);
    const net = int(settled.returned_minor) - int(settled.stake_minor);
    return net === 0n ? word : this.store.net(net, this.play.currency);
  }

  private face(amount: bigint): string {
    return formatChip(amount, this.store.exponent(this.play.currency), this.store.language);
  }

  /** As the face of a chip, but in full: `1000`, not `1k`. */
  private whole(amount: bigint): string {
    const unit = 10n ** BigInt(this.store.exponent(this.play.currency));
    return amount % unit === 0n ? String(amount / unit) : this.face(amount);
  }

  private money(amount: bigint): string {
    return this.store.money(amount, this.play.currency);
  }

  private limits(min: bigint, max: bigint): string {
    return this.t("spot.limits", { min: this.whole(min), max: this.whole(max) });
  }
}

define("rgs-spots", SpotsElement);
