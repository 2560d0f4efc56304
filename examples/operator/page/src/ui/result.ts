/** The message line of a table: a result in one sentence with its breakdown a tap away, or a refusal with its remedy. */

import { css, html, nothing, type TemplateResult } from "lit";

import { isOver, isWin } from "../model/rules.js";
import { labelOf, textOf } from "../model/texts.js";
import { int, type RoundView, type SettledBet } from "../model/types.js";
import type { Play } from "../state/play.js";
import { resultWords } from "../state/tell.js";
import { define, shared, StoreElement } from "./base.js";
import { card, cardStyles } from "./cards.js";
import { feltTexts } from "./felt-texts.js";

export class ResultElement extends StoreElement {
  static override properties = { ...StoreElement.properties, play: { attribute: false } };
  play!: Play;

  static override styles = [
    shared,
    cardStyles,
    css`
      :host {
        /* The sentence, and under it the tick and the details: their place is there before they are. */
        min-height: 4rem;
        display: grid;
        align-content: center;
        justify-items: center;
        text-align: center;
        color: #fff;
      }
      .line {
        display: flex;
        flex-wrap: wrap;
        gap: 0.3rem 0.75rem;
        align-items: center;
        justify-content: center;
      }
      .under {
        display: flex;
        flex-wrap: wrap;
        gap: 0 0.5rem;
        align-items: center;
        justify-content: center;
      }
      .tick {
        min-width: min(15.5rem, 100%);
        font-size: 0.875rem;
      }
      details[open] {
        flex-basis: 100%;
      }
      /* Three or four tables on a screen. */
      @media (min-width: 70rem) {
        :host([dense]) {
          min-height: 1.75rem;
          display: flex;
          flex-wrap: wrap;
          gap: 0 0.5rem;
          justify-content: center;
        }
        :host([dense]) .tick {
          min-width: 0;
        }
        :host([dense]) button {
          min-height: 1.5rem;
          padding: 0 0.4rem;
          font-size: 0.75rem;
        }
        :host([dense]) .won .sentence {
          font-size: 1rem;
        }
      }
      @media (max-width: 30rem) {
        :host {
          min-height: 3.9rem;
        }
        .won .sentence {
          font-size: 1.1rem !important;
        }
        .tick {
          min-height: 1.9rem;
        }
        .under {
          flex-wrap: nowrap;
          gap: 0.25rem;
        }
        .under:has(details[open]) {
          flex-wrap: wrap;
        }
        .tick {
          min-width: 13.5rem;
          font-size: 0.75rem;
          padding: 0.2rem 0.4rem;
        }
        details {
          font-size: 0.75rem !important;
        }
        summary {
          padding: 0.4rem 0.2rem;
        }
      }
      @container (max-height: 28rem) and (max-width: 37.9rem) {
        :host {
          min-height: 3.3rem;
        }
      }
      .sentence {
        font-weight: 700;
      }
      .won .sentence {
        font-size: 1.2rem;
        color: #ffe082;
        animation: rise 400ms ease-out;
      }
      @keyframes rise {
        from {
          transform: scale(0.8);
        }
      }
      :host([still]) .won .sentence {
        animation: none;
      }
      @media (prefers-reduced-motion: reduce) {
        .won .sentence {
          animation: none;
        }
      }
      details {
        font-size: 0.875rem;
      }
      summary {
        cursor: pointer;
        min-height: 1.5rem;
        padding: 0.15rem 0.4rem;
      }
      table {
        width: auto;
        margin-inline: auto;
        background: rgb(0 0 0 / 0.3);
        border-radius: 0.5rem;
      }
      th,
      td {
        border-color: rgb(255 255 255 / 0.25);
        padding: 0.1rem 0.5rem;
        font-weight: 400;
      }
      .aside {
        --card-width: 1.9rem;
        --card-gap: 0.15rem;
        font-size: 0.875rem;
        padding-bottom: 0.25rem;
      }
      .aside .cards {
        min-height: 0;
      }
      button {
        color: #fff;
        background: rgb(0 0 0 / 0.35);
        border-color: rgb(255 255 255 / 0.6);
        min-height: 2.25rem;
        padding: 0.2rem 0.7rem;
      }
      .note {
        background: #fff3d6;
        color: #3d2a00;
        border-radius: 0.5rem;
        padding: 0.3rem 0.7rem;
      }
      .note button {
        color: #3d2a00;
        background: #fff;
        border-color: #7a5a12;
      }
    `,
  ];

  protected override render(): unknown {
    const { play } = this;
    const { note, round } = play;
    if (note) {
      const { remedy } = note;
      return html`<div class="note line" data-note>
        <span>${note.text}</span>
        ${remedy
          ? html`<button data-does="remedy" @click=${() => play.set(remedy.bet, remedy.amount)}>
              ${this.t("remedy", { bet: this.bet(remedy.bet), amount: this.store.money(remedy.amount, play.currency) })}
            </button>`
          : nothing}
      </div>`;
    }
    if (!round || !isOver(round) || play.total) return nothing;
    return this.result(round);
  }

  private result(round: RoundView): TemplateResult {
    const state = this.store.proofs.of(round.round_id);
    return html`<div class="line ${isWin(round) ? "won" : ""}" data-result>
        <span class="sentence">${resultWords(this.store, this.play, round)}</span>
      </div>
      ${(round.settlement ?? []).map((each) => this.aside(each))}
      <div class="under">
        ${state
          ? html`<button class="tick" data-does="proof" data-proof=${state.state} @click=${() => this.store.open("proof", { play: this.play, round: round.round_id })}>
              ${this.t(`proof.tick.${state.state}`)}
            </button>`
          : html`<span class="tick"></span>`}
        <details>
          <summary>${this.t("result.details")}</summary>
          ${this.breakdown(round)}
        </details>
      </div>`;
  }

  /** What AA was paid for: five cards that are not those of the final hand (C-6). */
  private aside(settled: SettledBet): unknown {
    const { cards, result } = settled;
    if (settled.bet !== "aa" || result !== "BET_RESULT_WIN" || !cards?.length) return nothing;
    const { texts } = feltTexts(this.store, this.play.game);
    const row = textOf(texts, this.play.game.ruleset.id, "rows", settled.row);
    return html`<div class="line aside" data-aside>
      <span>${this.bet(settled.bet)}: ${row}</span>
      <span class="cards">${cards.map((code) => card(this.store, code))}</span>
    </div>`;
  }

  private breakdown(round: RoundView): TemplateResult {
    const money = (value: string | undefined): string => this.store.money(int(value), this.play.currency);
    const game = this.play.game.ruleset.id;
    return html`<table>
      <thead>
        <tr>
          <th scope="col">${this.t("history.bet")}</th>
          <th scope="col" class="number">${this.t("history.staked")}</th>
          <th scope="col" class="number">${this.t("history.returned")}</th>
          <th scope="col">${this.t("history.result")}</th>
        </tr>
      </thead>
      <tbody>
        ${(round.settlement ?? []).map(
          (each) => html`<tr>
            <th scope="row">${this.bet(each.bet)}</th>
            <td class="number">${money(each.stake_minor)}</td>
            <td class="number">${money(each.returned_minor)}</td>
            <td>
              ${labelOf(this.store.texts, game, "results", each.result)}${each.row
                ? ` (${textOf(this.store.texts, game, "rows", each.row)})`
                : nothing}
            </td>
          </tr>`,
        )}
        ${round.grant_id
          ? html`<tr data-granted>
              <th scope="row">${this.t("free_bet.campaign")}</th>
              <td class="number">${money(round.granted_minor)}</td>
              <td class="number">${money(round.reclaimed_minor)}</td>
              <td></td>
            </tr>`
          : nothing}
      </tbody>
    </table>`;
  }

  private bet(bet: string): string {
    return labelOf(this.store.texts, this.play.game.ruleset.id, "bets", bet);
  }
}

define("rgs-result", ResultElement);
