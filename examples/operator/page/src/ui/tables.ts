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
        grid-template-rows: auto minmax(0, 1fr);
        height: 100%;
        min-height: 0;
      }
      nav {
        display: flex;
        gap: 0.25rem;
        padding: 0.25rem;
        background: var(--panel);
        overflow-x: auto;
      }
      nav button {
        flex: 1 0 5.5rem;
        max-width: 16rem;
        font-size: 0.8125rem;
        font-weight: 600;
        display: grid;
        line-height: 1.15;
        text-align: left;
        min-height: 2.5rem;
        padding: 0.2rem 0.5rem;
      }
      nav .name {
        overflow: hidden;
        text-overflow: ellipsis;
        white-space: nowrap;
      }
      nav button[aria-pressed="true"] {
        border-color: var(--ink);
        box-shadow: inset 0 0 0 1px var(--ink);
      }
      nav .light {
        font-weight: 400;
        font-size: 0.75rem;
        overflow: hidden;
        text-overflow: ellipsis;
        white-space: nowrap;
      }
      .grid {
        grid-row: 2;
        display: grid;
        grid-template: minmax(0, 1fr) / minmax(0, 1fr);
        gap: 0.4rem;
        min-height: 0;
      }
      rgs-table {
        container-type: inline-size;
        min-width: 0;
        min-height: 0;
      }
      rgs-table:not(.front) {
        display: none;
      }
      /* All tables are seen at once: no tabs are needed. */
      @media (min-width: 70rem) {
        nav {
          display: none;
        }
        .grid:not(.one) {
          grid-template-columns: minmax(0, 1fr) minmax(0, 1fr);
          padding: 0.4rem;
          overflow: auto;
        }
        .three,
        .four {
          grid-auto-rows: minmax(22rem, 1fr);
          grid-template-rows: minmax(22rem, 1fr);
        }
        .grid:not(.one) rgs-table {
          display: grid;
          border: 2px solid var(--line);
          border-radius: 0.5rem;
          overflow: clip;
        }
        .grid:not(.one) rgs-table.front {
          border-color: var(--accent);
        }
      }
      /* The grid gives each table its size: what changes in one is laid out in it alone. */
      @media (min-width: 70rem) and (min-height: 32.01rem) {
        .grid:not(.one) rgs-table {
          contain: strict;
        }
      }
      @media (max-height: 32rem) {
        :host {
          height: auto;
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
    const seconds = signal?.left === undefined ? "" : `${Math.ceil(signal.left / 1000)} s `;
    return html`<button aria-pressed=${index === store.front} data-tab=${index} @click=${() => this.toFront(index)}>
      <span class="name">${play.name}</span>
      <span class="light">${signal ? `${seconds}${this.t(`light.${signal.words}` as WordKey)}` : ""}</span>
    </button>`;
  }

  private toFront(index: number): void {
    if (this.store.front === index) return;
    this.store.front = index;
    this.store.emit();
  }
}

define("rgs-tables", TablesElement);
