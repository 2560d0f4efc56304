/** What each bet pays, always in view beside the felt; the row that paid is marked. */

import { css, html, nothing } from "lit";

import { labelOf } from "../model/texts.js";
import type { Game, RoundView } from "../model/types.js";
import { define, shared, StoreElement } from "./base.js";

export class PaytableElement extends StoreElement {
  static override properties = { ...StoreElement.properties, game: { attribute: false }, round: { attribute: false } };
  game!: Game;
  round: RoundView | undefined;

  static override styles = [
    shared,
    css`
      :host {
        display: flex;
        flex-wrap: wrap;
        align-items: start;
        align-content: start;
        gap: 0.75rem;
        color: #fff;
      }
      table {
        flex: 1 1 8.5rem;
        width: auto;
        background: rgb(0 0 0 / 0.28);
        border-radius: 0.5rem;
        font-size: 0.8125rem;
      }
      caption {
        text-align: left;
        font-weight: 700;
        padding: 0.25rem 0.5rem;
      }
      td,
      th {
        padding: 0.08rem 0.5rem;
        border: 0;
        font-weight: 400;
      }
      tr.paid {
        outline: 2px solid #ffd54a;
        font-weight: 700;
      }
      tr.paid th {
        font-weight: 700;
      }
    `,
  ];

  protected override render(): unknown {
    return (this.game.paytables ?? []).map((table) => {
      const settled = this.round?.settlement?.find((each) => each.bet === table.bet);
      const paid = settled?.row ?? "";
      const rows = table.rows ?? [];
      // Rows that lose are none of a paytable; what pushes is said once.
      const pays = rows.filter((each) => each.pays !== "lost" && each.pays !== "push");
      const pushes = rows.some((each) => each.pays === "push");
      return html`<table>
        <caption>${this.name(table.bet)}</caption>
        <tbody>
          ${pays.map(
            (each) => html`<tr class=${paid === each.category ? "paid" : ""}>
              <th scope="row">${labelOf(this.store.texts, this.game.ruleset.id, "rows", each.category)}</th>
              <td class="number">${each.pays}${paid === each.category ? html` <span class="hidden-words">${this.t("paytable.paid")}</span>` : nothing}</td>
            </tr>`,
          )}
          ${pushes
            ? html`<tr><th scope="row">${this.t("paytable.else")}</th><td class="number">${this.t("paytable.push")}</td></tr>`
            : nothing}
        </tbody>
      </table>`;
    });
  }

  private name(bet: string): string {
    return labelOf(this.store.texts, this.game.ruleset.id, "bets", bet);
  }
}

define("rgs-paytable", PaytableElement);
