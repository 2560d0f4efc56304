/** The traffic light of a table: a lamp with its own shape, a ring of the time that is left, and words (T-1). */

import { css, html, nothing, svg } from "lit";

import { secondsLeft } from "../model/clock.js";
import { signalOf, type Signal } from "../model/light.js";
import type { TablePlay } from "../state/table.js";
import type { WordKey } from "../words/index.js";
import { define, shared, TickingElement } from "./base.js";

const ROUND = 2 * Math.PI * 20;

export class LightElement extends TickingElement {
  static override properties = { ...TickingElement.properties, play: { attribute: false } };
  play!: TablePlay;
  private last = "";

  static override styles = [
    shared,
    css`
      :host {
        display: flex;
        align-items: center;
        gap: 0.6rem;
        color: #fff;
        padding-block: 0.2rem;
      }
      svg {
        width: 2.6rem;
        height: 2.6rem;
        flex: none;
      }
      .words {
        font-weight: 700;
      }
      /* Three or four tables on a screen. */
      @media (min-width: 70rem) {
        :host([dense]) {
          padding-block: 0.05rem;
          font-size: 0.875rem;
        }
        :host([dense]) svg {
          width: 1.75rem;
          height: 1.75rem;
        }
      }
      .track {
        fill: #08231d;
        stroke: rgb(0 0 0 / 0.45);
        stroke-width: 6;
      }
      .left {
        fill: none;
        stroke-width: 6;
        transform: rotate(-90deg);
        transform-origin: 24px 24px;
      }
      .green {
        fill: #5fe08a;
        stroke: #5fe08a;
      }
      .amber {
        fill: #ffc94d;
        stroke: #ffc94d;
      }
      .red {
        fill: #ff4b3e;
        stroke: #ff4b3e;
      }
      .off {
        fill: #b8c2be;
        stroke: #b8c2be;
      }
      .left.green,
      .left.amber,
      .left.red,
      .left.off {
        fill: none;
      }
      text {
        font: 700 15px/1 "Segoe UI", Roboto, Helvetica, Arial, sans-serif;
        fill: #fff;
        stroke: none;
      }
    `,
  ];

  protected override render(): unknown {
    const { table } = this.play;
    if (!table) return nothing;
    const signal = signalOf(table, this.store.clock);
    if (this.last === "green" && signal.light === "amber") {
      this.store.sound.lastBets();
      this.store.announce(this.t("light.amber"));
    }
    // Red by the clock: what lies on the felt can be changed no more.
    if (this.last !== "red" && signal.words === "red") this.store.emit();
    this.last = signal.light;
    const words = this.t(`light.${signal.words}` as WordKey);
    return html`<svg viewBox="0 0 48 48" aria-hidden="true">
        <circle class="track" cx="24" cy="24" r="20" />
        ${signal.part === undefined
          ? nothing
          : svg`<circle class="left ${signal.light}" cx="24" cy="24" r="20" stroke-dasharray=${ROUND}
              stroke-dashoffset=${ROUND * (1 - signal.part)} />`}
        ${lamp(signal)}
      </svg>
      <span class="words">${words}</span>`;
  }
}

/** Green is a disc, amber a triangle, red a square: no colour is needed to tell them apart. */
function lamp(signal: Signal): unknown {
  if (signal.left !== undefined) {
    return svg`<text x="24" y="29" text-anchor="middle">${secondsLeft(signal.left)}</text>${mark(signal.light, 24, 38, 4)}`;
  }
  return mark(signal.light, 24, 24, 10);
}

function mark(light: string, x: number, y: number, r: number): unknown {
  if (light === "green") return svg`<circle class="green" cx=${x} cy=${y} r=${r} />`;
  if (light === "amber") return svg`<path class="amber" d="M${x - r} ${y + r}h${2 * r}l${-r} ${-2 * r}z" />`;
  if (light === "red") return svg`<rect class="red" x=${x - r} y=${y - r} width=${2 * r} height=${2 * r} />`;
  return svg`<rect class="off" x=${x - r} y=${y - r / 3} width=${2 * r} height=${(2 * r) / 3} />`;
}

define("rgs-light", LightElement);
