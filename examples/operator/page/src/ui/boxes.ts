/**
 * The seven boxes of a table: who sits where, whose decision is out; a free box can be taken (T-5). What lies in the
 * player's own box is shown large: its cards above, its bets on the spots.
 */

import { css, html, nothing, type TemplateResult } from "lit";

import type { BoxView } from "../model/types.js";
import type { TablePlay } from "../state/table.js";
import { define, shared, StoreElement } from "./base.js";
import { card, cardStyles } from "./cards.js";

export class BoxesElement extends StoreElement {
  static override properties = { ...StoreElement.properties, play: { attribute: false } };
  play!: TablePlay;

  static override styles = [
    shared,
    cardStyles,
    css`
      :host {
        --card-width: 1.5rem;
        --card-gap: 0.1rem;
        width: 100%;
      }
      ol {
        list-style: none;
        margin: 0;
        padding: 0;
        display: grid;
        grid-auto-flow: column;
        grid-auto-columns: minmax(4.6rem, 1fr);
        overflow-x: auto;
        gap: 0.3rem;
      }
      li {
        background: rgb(0 0 0 / 0.25);
        border: 2px solid rgb(255 255 255 / 0.35);
        border-radius: 0.5rem;
        padding: 0.25rem;
        font-size: 0.75rem;
        text-align: center;
        display: grid;
        align-content: start;
        gap: 0.1rem;
        min-height: 4rem;
        color: #fff;
      }
      li.own {
        border-color: #ffd54a;
        border-style: double;
        border-width: 4px;
      }
      .cards {
        min-height: 0;
      }
      .box,
      .who {
        font-weight: 700;
        overflow: hidden;
        text-overflow: ellipsis;
        white-space: nowrap;
      }
      button {
        min-height: 2rem;
        padding: 0.1rem 0.3rem;
        font-size: 0.8125rem;
      }
    `,
  ];

  protected override render(): unknown {
    const { play } = this;
    const boxes = play.table?.boxes ?? [];
    const count = Math.max(play.entry?.boxes ?? 7, 1);
    const all = Array.from({ length: count }, (_, index) => boxes.find((each) => each.box === index + 1) ?? { box: index + 1 });
    return html`<ol tabindex="0" aria-label=${this.t("table.boxes")}>
      ${all.map((box) => this.box(box))}
    </ol>`;
  }

  private box(box: BoxView): TemplateResult {
    const { play, store } = this;
    const own = play.seated && play.seat?.box === box.box;
    const number = this.t("table.box", { box: box.box ?? 0 });
    const taken = Boolean(box.nickname) || own;
    return html`<li class=${own ? "own" : ""} data-box=${box.box ?? 0}>
      <span class="box">${number}</span>
      ${taken ? html`<span class="who" title=${box.nickname ?? ""}>${own ? this.t("table.you") : box.nickname}</span>` : nothing}
      ${box.hole_cards?.length && !own
        ? html`<div class="cards">${box.hole_cards.map((code) => card(store, code))}</div>`
        : nothing}
      ${taken ? html`<span>${this.status(box)}</span>` : nothing}
      ${!taken && !play.seated && !play.needsParticipation && !box.reserved
        ? html`<button data-does="box" ?disabled=${play.busy} @click=${() => play.join(box.box)}>${this.t("table.sit_here")}</button>`
        : nothing}
      ${!taken && box.reserved ? html`<span>${this.t("table.reserved")}</span>` : nothing}
    </li>`;
  }

  private status(box: BoxView): string {
    if (!box.in_round || this.play.table?.state !== "TABLE_STATE_DECIDING") return "";
    return this.t(box.decided ? "table.has_decided" : "table.decides");
  }
}

define("rgs-boxes", BoxesElement);
