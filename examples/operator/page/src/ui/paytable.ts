/**
 * What each bet pays, always in view beside the felt: one table, a row for each hand, a column for each bet. Hands that
 * pay the same share a row. What was paid is marked.
 */

import { css, html, nothing, type TemplateResult } from "lit";

import { labelOf, textOf } from "../model/texts.js";
import type { Game, RoundView } from "../model/types.js";
import { define, shared, StoreElement } from "./base.js";
import { feltTexts } from "./felt-texts.js";
import { paytableRows, type PaytableLine } from "./paytable-rows.js";

export class PaytableElement extends StoreElement {
  static override properties = { ...StoreElement.properties, game: { attribute: false }, round: { attribute: false } };
  game!: Game;
  round: RoundView | undefined;

  static override styles = [
    shared,
    css`
      :host {
        color: #fff;
      }
      table {
        background: rgb(0 0 0 / 0.28);
        border-radius: 0.5rem;
        font-size: 0.6875rem;
        line-height: 1.25;
      }
      td,
      th {
        padding: 0.12rem 0.15rem;
        border: 0;
        font-weight: 400;
        vertical-align: baseline;
      }
      td {
        white-space: nowrap;
      }
      td.word {
        white-space: normal;
      }
      th:first-child {
        padding-left: 0.35rem;
      }
      tr > :last-child {
        padding-right: 0.35rem;
      }
      thead th {
        font-weight: 700;
        vertical-align: bottom;
        hyphens: auto;
      }
      /* A long name hangs over the empty corner instead of taking the room of the hands. */
      td + th .bet {
        display: flex;
        justify-content: flex-end;
        width: 1.6rem;
        margin-left: auto;
      }
      tbody tr:nth-child(odd) {
        background: rgb(0 0 0 / 0.18);
      }
      td.paid {
        outline: 2px solid #ffd54a;
        outline-offset: -2px;
        font-weight: 700;
        color: #ffe082;
      }
      /* A felt with little room: several tables on a phone, a line above the felt. */
      @container (max-height: 28rem) and (max-width: 37.9rem) {
        table {
          line-height: 1.1;
        }
        td,
        th {
          padding-block: 0.05rem;
        }
      }
      @container (min-width: 38rem) {
        table {
          font-size: 0.8125rem;
        }
        td,
        th {
          padding-inline: 0.35rem;
        }
      }
      @container (min-width: 56rem) {
        table {
          font-size: 0.9375rem;
          line-height: 1.4;
        }
        td,
        th {
          padding: 0.25rem 0.6rem !important;
        }
      }
      @media (min-width: 70rem) {
        :host([dense]) table {
          font-size: 0.75rem;
          line-height: 1.2;
        }
        :host([dense]) td,
        :host([dense]) th {
          padding: 0.05rem 0.35rem !important;
        }
      }
    `,
  ];

  protected override render(): unknown {
    const { game } = this;
    const { words, texts } = feltTexts(this.store, game);
    const name = (bet: string): string => labelOf(texts, game.ruleset.id, "bets", bet);
    const tables = game.paytables ?? [];
    return html`<table lang=${words.language} aria-label=${this.t("rules.paytables")}>
      <thead>
        <tr>
          <td></td>
          ${tables.map((table) => html`<th scope="col" class="number"><span class="bet">${name(table.bet)}</span></th>`)}
        </tr>
      </thead>
      <tbody>
        ${paytableRows(tables).map(
          (line) => html`<tr>
            <th scope="row">${this.hands(line)}</th>
            ${tables.map((table, index) => this.cell(table.bet, line, line.pays[index] ?? "lost"))}
          </tr>`,
        )}
      </tbody>
    </table>`;
  }

  /** The hands of a row: one, a range, or all that are left. */
  private hands(line: PaytableLine): string {
    const { game } = this;
    const { texts, words } = feltTexts(this.store, game);
    const name = (row: string | undefined): string => labelOf(texts, game.ruleset.id, "rows", row);
    const [first] = line.rows;
    const last = line.rows.at(-1);
    if (line.rows.length === 1) return name(first);
    if (line.isRest) return words.get("paytable.else");
    return `${name(first)} – ${textOf(texts, game.ruleset.id, "rows", last)}`;
  }

  private cell(bet: string, line: PaytableLine, pays: string): TemplateResult {
    const { texts } = feltTexts(this.store, this.game);
    const settled = this.round?.settlement?.find((each) => each.bet === bet);
    const isPaid = settled?.result === "BET_RESULT_WIN" && line.rows.includes(settled.row ?? "");
    const isWord = /^[a-z]/.test(pays);
    const text = pays === "lost" ? "–" : isWord ? textOf(texts, this.game.ruleset.id, "pays", pays) : pays;
    return html`<td class="number ${isPaid ? "paid" : ""} ${isWord ? "word" : ""}">
      ${text}${isPaid ? html` <span class="hidden-words">${this.t("paytable.paid")}</span>` : nothing}
    </td>`;
  }
}

define("rgs-paytable", PaytableElement);
