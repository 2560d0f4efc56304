/** Up to four tables at once: 2 x 2 on a desktop, tabs on a phone (T-4, F-12). */

import { css, html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";

import { signalOf } from "../model/light.js";
import type { TablePlay } from "../state/table.js";
import type { WordKey } from "../words/index.js";
import { define, shared, TickingElement } from "./base.js";
import "./table.js";

export class TablesElement extends TickingElement {
  static override styles = [
    shared,
    css`
      :host {
        display: grid;
        grid-template-rows: auto 1fr;
        height: 100%;
      }
      nav {
        display: flex;
        gap: 0.25rem;
        padding: 0.25rem;
        background: var(--panel);
        overflow-x: auto;
      }
      nav button {
        flex: 1 0 auto;
        max-width: 16rem;
        font-size: 0.8125rem;
        font-weight: 600;
        display: grid;
        line-height: 1.15;
        text-align: left;
        min-height: 2.5rem;
      }
      nav button[aria-pressed="true"] {
        border-color: var(--ink);
        border-width: 2px;
      }
      nav .light {
        font-weight: 400;
      }
      .grid {
        grid-row: 2;
        display: grid;
        gap: 0.5rem;
        min-height: 0;
      }
      rgs-table {
        container-type: inline-size;
        min-width: 0;
      }
      .grid:not(.wide) rgs-table:not(.front) {
        display: none;
      }
      @media (min-width: 70rem) {
        .grid.two,
        .grid.three,
        .grid.four {
          grid-template-columns: 1fr 1fr;
        }
        .grid rgs-table:not(.front) {
          display: grid !important;
        }
        .grid.two rgs-table,
        .grid.three rgs-table,
        .grid.four rgs-table {
          border: 2px solid var(--line);
          border-radius: 0.5rem;
          overflow: clip;
        }
        .grid.three rgs-table,
        .grid.four rgs-table {
          height: max(28.5rem, calc((100dvh - 7.5rem) / 2));
          overflow: auto;
        }
        .grid.two rgs-table.front,
        .grid.three rgs-table.front,
        .grid.four rgs-table.front {
          border-color: var(--accent);
        }
      }
    `,
  ];

  protected override render(): unknown {
    const { store } = this;
    const { tables } = store;
    const size = ["", "one", "two", "three", "four"][tables.length] ?? "four";
    return html`${tables.length > 1
        ? html`<nav aria-label=${this.t("table.tabs")}>
            ${tables.map((play, index) => this.tab(play, index))}
          </nav>`
        : nothing}
      <div class="grid ${size}">
        ${repeat(
          tables,
          (play) => play.id,
          (play, index) => html`<rgs-table
            class=${index === store.front ? "front" : ""}
            .store=${store}
            .play=${play}
            @pointerdown=${() => this.toFront(index)}
            @focusin=${() => this.toFront(index)}
          ></rgs-table>`,
        )}
      </div>`;
  }

  private tab(play: TablePlay, index: number): unknown {
    const { store } = this;
    const signal = play.table ? signalOf(play.table, store.clock) : undefined;
    const seconds = signal?.left === undefined ? "" : ` ${Math.ceil(signal.left / 1000)} s`;
    return html`<button aria-pressed=${index === store.front} data-tab=${index} @click=${() => this.toFront(index)}>
      <span>${play.name}</span>
      <span class="light">${signal ? `${this.t(`light.${signal.words}` as WordKey)}${seconds}` : ""}</span>
    </button>`;
  }

  private toFront(index: number): void {
    if (this.store.front === index) return;
    this.store.front = index;
    this.store.emit();
  }
}

define("rgs-tables", TablesElement);
