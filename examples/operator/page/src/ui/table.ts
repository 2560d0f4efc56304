/** A table that players share: one hand for all, or seven boxes. */

import { css, html, nothing, type TemplateResult } from "lit";

import { isOver } from "../model/rules.js";
import { labelOf, textOf } from "../model/texts.js";
import { bare } from "../model/types.js";
import type { TablePlay } from "../state/table.js";
import { define, shared, StoreElement } from "./base.js";
import { cardStyles, skipTurns } from "./cards.js";
import { feltStyles } from "./felt-style.js";
import { hands } from "./hands.js";
import "./boxes.js";
import "./buy.js";
import "./decide.js";
import "./light.js";
import "./paytable.js";
import "./rack.js";
import "./result.js";
import "./spots.js";
import "./strip.js";

export class TableElement extends StoreElement {
  static override properties = { ...StoreElement.properties, play: { attribute: false } };
  play!: TablePlay;

  static override styles = [
    shared,
    cardStyles,
    feltStyles,
    css`
      .title {
        display: flex;
        align-items: center;
        gap: 0.25rem;
        background: var(--panel);
        padding: 0 0.25rem 0 0.75rem;
      }
      .title h2 {
        flex: 1;
        font-size: 1rem;
        line-height: 1.2;
        min-width: 0;
      }
      @media (max-width: 30rem) {
        .title h2 {
          font-size: 0.875rem;
        }
      }
      .title button {
        min-height: 2.25rem;
      }
      .head {
        display: flex;
        flex-wrap: wrap;
        align-items: center;
      }
      .state {
        flex: 1 1 100%;
      }
      /* The cards of own and of others stand in the boxes, small: the dealer's and the board's have the room. */
      @media (min-width: 70rem) {
        :host([compact]) .cloth {
          --rest: 17rem;
        }
        :host([compact]) .boxed {
          --rest: 23.5rem;
        }
        :host([compact]) .bar {
          min-height: 8.8rem;
        }
        /* Three or four tables: the cards in one row, and all else as low as it goes. */
        :host([dense]) .cloth {
          --side: 15.5rem;
          --card-width: clamp(1.7rem, min((100cqw - var(--side) - 3.6rem) / 10, (100cqh - 9.5rem) / 1.4), 4rem);
          gap: 0.1rem 0.75rem;
          padding: 0.25rem 0.6rem;
        }
        :host([dense]) .boxed {
          --card-width: clamp(1.6rem, min((100cqw - var(--side) - 3.6rem) / 10, (100cqh - 14.5rem) / 1.4), 4rem);
        }
        :host([dense]) .hands {
          grid-template-columns: auto auto auto;
          justify-content: space-between;
          align-items: start;
          gap: 0.25rem;
        }
        /* The names stand under the cards, and have the place under the board, too. */
        :host([dense]) .hand {
          grid-template-columns: 100%;
        }
        :host([dense]) .hand.dealer,
        :host([dense]) .hand.own {
          width: calc(var(--card-width) * 2.08);
          justify-items: start;
        }
        :host([dense]) .hand.own {
          justify-items: end;
        }
        :host([dense]) .named {
          font-size: 0.75rem;
          min-height: 2.4em;
          width: calc(var(--card-width) * 4.6 + 0.5rem);
          justify-content: start;
          text-align: left;
        }
        :host([dense]) .hand.own .named {
          justify-content: end;
          text-align: right;
        }
        :host([dense]) .bar {
          min-height: 5rem;
          padding-block: 0.2rem;
        }
        :host([dense]) .title h2 {
          font-size: 0.875rem;
          flex: 0 1 38%;
          overflow: hidden;
          text-overflow: ellipsis;
          white-space: nowrap;
        }
        :host([dense]) .title {
          min-height: 2rem;
        }
        :host([dense]) .title h2 + button {
          margin-left: auto;
        }
        /* The light stands beside the name, unless there is more to say. */
        :host([dense]) .about {
          grid-area: 1 / 1;
        }
        :host([dense]) .head:not(:has(.state)) {
          grid-area: 1 / 1;
          justify-self: center;
          align-self: start;
          min-width: 8rem;
          padding-inline: 0.5rem;
          border-radius: 0 0 1rem 1rem;
        }
        :host([dense]) .title button {
          min-height: 1.5rem;
          padding: 0 0.5rem;
        }
      }
    `,
  ];

  constructor() {
    super();
    this.addEventListener("pointerdown", () => {
      const boxes = this.renderRoot.querySelector("rgs-boxes");
      skipTurns(this.store, [this.shadowRoot, boxes?.shadowRoot ?? null]);
    });
  }

  protected override render(): unknown {
    const { play, store } = this;
    const still = store.settings.motion === "reduced";
    this.toggleAttribute("still", still);
    this.toggleAttribute("compact", store.tables.length > 1);
    const dense = store.tables.length > 2;
    this.toggleAttribute("dense", dense);
    const { table } = play;
    const shown = play.hasBoxes
      ? { ...play.round, board: table?.board, dealer_cards: table?.dealer_cards, dealer_hand: table?.dealer_hand, dealer_qualifies: table?.dealer_qualifies }
      : { ...table, status: play.round?.status };
    return html`<div class="about"><div class="title">
        <h2>${play.name}</h2>
        ${play.entry?.chat
          ? html`<button class="quiet" data-does="chat" @click=${() => store.open("chat", { play })}>
              ${this.t("chat.button")}${play.unread && store.settings.chat ? ` (${play.unread})` : nothing}
            </button>`
          : nothing}
        <button class="quiet" data-does="leave" aria-label=${this.t("table.leave", { table: play.name })} @click=${() => store.sessions.leaveTable(play)}>
          ✕
        </button>
      </div>
      <rgs-strip ?dense=${dense} .store=${store} .play=${play}></rgs-strip></div>
      <div class="head">
        <rgs-light ?dense=${dense} .store=${store} .play=${play}></rgs-light>
        ${this.states()}
      </div>
      <section class="felt" tabindex="0" aria-label=${this.t("felt.label_of", { table: play.name })}>
        <div class="cloth ${play.hasBoxes ? "boxed" : ""}">
          <div class="hands">
            ${hands(store, play.game, shown, play.hasBoxes)}
          </div>
          ${play.hasBoxes ? html`<rgs-boxes .store=${store} .play=${play}></rgs-boxes>` : nothing}
          <rgs-result ?dense=${dense} ?still=${still} .store=${store} .play=${play}></rgs-result>
          <rgs-spots ?dense=${dense} ?still=${still} .store=${store} .play=${play}></rgs-spots>
          <rgs-paytable class="side" ?dense=${dense} .store=${store} .game=${play.game} .round=${play.round}></rgs-paytable>
        </div>
      </section>
      <div class="bar" data-bar>${this.bar()}</div>`;
  }

  private states(): unknown {
    const { play, store } = this;
    const state = bare(play.table?.state, "TABLE_STATE_");
    if (play.takenOver) {
      return html`<p class="state" data-state="other-device">
        ${this.t("state.other_device")}
        <button @click=${() => play.join(play.seat?.box ?? 0)}>${this.t("state.take_back")}</button>
      </p>`;
    }
    if (state === "PAUSED") {
      const code = play.table?.malfunction_code ?? "";
      return html`<p class="state" data-state="paused">
        ${this.t("state.paused", { code: textOf(store.texts, play.game.ruleset.id, "malfunctions", code) })}
      </p>`;
    }
    if (play.round?.status === "ROUND_STATUS_VOID") return html`<p class="state" data-state="void">${this.t("state.void")}</p>`;
    if (play.hasSat && play.seat?.ended && play.seat.ended !== "LEFT") {
      return html`<p class="state">${textOf(store.texts, play.game.ruleset.id, "seat_ends", play.seat.ended)}</p>`;
    }
    return nothing;
  }

  private bar(): TemplateResult {
    const { play, store } = this;
    if (play.needsParticipation || play.ended) return html`<rgs-buy .store=${store} .play=${play}></rgs-buy>`;
    if (!play.seated && !play.takenOver) {
      return html`<div class="row centred">
        <p>${this.t(play.hasBoxes ? "table.choose_box" : "table.sit_hint")}</p>
        <button class="primary" data-does="join" ?disabled=${play.busy} @click=${() => play.join()}>${this.t("table.sit")}</button>
      </div>`;
    }
    const { open, table } = play;
    const deciding = bare(table?.state, "TABLE_STATE_") === "DECIDING";
    if (open && deciding && open.legal_actions?.length) {
      return html`<rgs-decide
        .store=${store}
        .play=${play}
        .round=${open}
        .deadline=${table?.deadline}
        @decide=${(event: CustomEvent<string>) => play.decide(event.detail)}
      ></rgs-decide>`;
    }
    if (play.bettingOpen) {
      return html`<rgs-rack .store=${store} .play=${play}></rgs-rack>
        <p class="muted stated" data-stated=${play.unstated ? "no" : "yes"}>${this.stated()}</p>`;
    }
    return html`<p class="waits">${this.waits()}</p>`;
  }

  /** Whether what lies on the felt is what the table has. */
  private stated(): string {
    const { play } = this;
    if (play.total === 0n) return this.t("table.no_bets");
    const { refusal } = play;
    if (refusal) return this.store.refusalNote(refusal, play).text;
    return play.unstated ? this.t("table.placing") : this.t("table.placed");
  }

  private waits(): string {
    const { play, store } = this;
    if (play.takenOver) return this.t("state.other_device");
    if (play.takingBack) return this.t("table.taking_back");
    const { round } = play;
    const last = round?.actions?.at(-1);
    if (round && !isOver(round) && last?.by === "DECIDED_BY_TIMER") {
      return labelOf(store.texts, play.game.ruleset.id, "automatic_actions", last.action);
    }
    if (round && !isOver(round) && bare(play.table?.state, "TABLE_STATE_") === "DECIDING") {
      const action = textOf(store.texts, play.game.ruleset.id, "actions", last?.action);
      return last ? this.t("table.decided", { action }) : this.t("table.others");
    }
    return round ? this.t("table.next_soon") : this.t("table.not_in_round");
  }
}

define("rgs-table", TableElement);
