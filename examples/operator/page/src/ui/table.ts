/** A table that players share: one hand for all, or seven boxes. */

import { css, html, nothing, type TemplateResult } from "lit";

import { isOver } from "../model/rules.js";
import { textOf } from "../model/texts.js";
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
      }
      :host {
        grid-template-rows: auto 1fr auto;
      }
      .head {
        position: sticky;
        top: 0;
        z-index: 1;
        margin: -0.6rem -0.6rem 0;
        padding: 0.3rem 0.6rem;
        background: var(--felt);
      }
      @container (min-width: 56rem) {
        .head {
          margin: 0;
          padding: 0;
          background: none;
        }
      }
      @container (min-width: 38rem) {
        :host([compact]) .felt {
          --card-width: clamp(2.3rem, 5vh, 3.5rem);
          gap: 0.3rem 1rem;
          grid-template-columns: minmax(0, 1fr) 15rem;
          grid-template-areas: "head side" "hands side" "result side" "spots side";
        }
        :host([compact]) .head {
          grid-area: head;
          margin: 0;
          padding: 0;
          background: none;
        }
        :host([compact]) .hands {
          grid-area: hands;
        }
        :host([compact]) rgs-result {
          grid-area: result;
        }
        :host([compact]) rgs-spots {
          grid-area: spots;
        }
        :host([compact]) .side {
          grid-area: side;
        }
        :host([compact]) .bar {
          min-height: 8.6rem;
          padding: 0.3rem;
        }
        /* Three or four tables: the cards in one row, the light above the paytable; money and ids stay in view. */
        :host([dense]) .about {
          position: sticky;
          top: 0;
          z-index: 2;
        }
        :host([dense]) .felt {
          --card-width: clamp(1.9rem, 3.6vh, 2.6rem);
          --card-gap: 0.2rem;
          gap: 0.2rem 0.75rem;
          padding: 0.3rem 0.5rem;
          grid-template-columns: minmax(0, 1fr) 18.5rem;
          grid-template-rows: auto auto auto auto;
          grid-template-areas: "hands head" "hands side" "result side" "spots side";
        }
        :host([dense]) .hands {
          grid-template-columns: minmax(0, 1fr) auto minmax(0, 1fr);
          align-items: start;
          gap: 0.25rem;
        }
        :host([dense]) .named {
          font-size: 0.75rem;
          line-height: 1.2;
          gap: 0 0.3rem;
          min-height: 1.8rem;
          align-content: start;
          text-align: center;
        }
        :host([dense]) .hands rgs-boxes {
          grid-column: 1 / -1;
        }
        :host([dense]) .bar {
          min-height: 7rem;
        }
        :host([dense]) .title h2 {
          font-size: 0.875rem;
        }
        :host([dense]) .title button {
          min-height: 1.75rem;
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
    this.toggleAttribute("dense", store.tables.length > 2);
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
      <rgs-strip .store=${store} .play=${play}></rgs-strip></div>
      <div class="felt">
        <div class="head">
          <rgs-light .store=${store} .play=${play}></rgs-light>
          ${this.states()}
        </div>
        <div class="hands">
          ${hands(store, play.game, shown, play.hasBoxes)}
          ${play.hasBoxes ? html`<rgs-boxes .store=${store} .play=${play}></rgs-boxes>` : nothing}
        </div>
        <rgs-result ?dense=${store.tables.length > 2} ?still=${still} .store=${store} .play=${play}></rgs-result>
        <rgs-spots ?dense=${store.tables.length > 2} ?still=${still} .store=${store} .play=${play}></rgs-spots>
        <rgs-paytable class="side" .store=${store} .game=${play.game} .round=${play.round}></rgs-paytable>
      </div>
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
      return this.t(last.action === "ACTION_FOLD" ? "decide.auto_fold" : "decide.auto_check");
    }
    if (round && !isOver(round) && bare(play.table?.state, "TABLE_STATE_") === "DECIDING") {
      const action = textOf(store.texts, play.game.ruleset.id, "actions", last?.action);
      return last ? this.t("table.decided", { action }) : this.t("table.others");
    }
    return round ? this.t("table.next_soon") : this.t("table.not_in_round");
  }
}

define("rgs-table", TableElement);
