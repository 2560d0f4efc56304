/** What is always shown: game, ids, code, money, both times (R-1, R-3, F-3). */

import { css, html, nothing, type TemplateResult } from "lit";

import { formatElapsed } from "../model/clock.js";
import { ownStake } from "../model/rules.js";
import { textOf } from "../model/texts.js";
import { int } from "../model/types.js";
import type { Play } from "../state/play.js";
import { SoloPlay } from "../state/solo.js";
import { TablePlay } from "../state/table.js";
import { define, shared, TickingElement } from "./base.js";

export class StripElement extends TickingElement {
  static override properties = { ...TickingElement.properties, play: { attribute: false } };
  play!: Play;

  static override styles = [
    shared,
    css`
      :host {
        background: var(--panel);
        border-bottom: 1px solid var(--line);
        padding: 0.3rem 0.75rem;
        font-size: 0.8125rem;
        line-height: 1.25;
        font-variant-numeric: tabular-nums;
      }
      @media (min-width: 30.01rem) {
        :host {
          display: flex;
          flex-wrap: wrap;
          align-items: baseline;
          gap: 0 1.25rem;
        }
      }
      dl {
        display: flex;
        flex-wrap: wrap;
        align-items: baseline;
        gap: 0.1rem 1rem;
        margin: 0;
      }
      dl > div {
        display: flex;
        gap: 0.3rem;
        align-items: baseline;
      }
      dt {
        color: var(--muted);
      }
      dd {
        font-weight: 600;
        overflow-wrap: anywhere;
      }
      .money dd {
        font-size: 0.95rem;
      }
      .tag {
        border: 1px solid currentColor;
        border-radius: 0.3rem;
        padding: 0 0.3rem;
        font-weight: 700;
        font-size: 0.6875rem;
        text-transform: uppercase;
        color: var(--amber-ink);
      }
      /* What changes by itself has its place: nothing beside it moves. */
      [data-fact="code"] {
        min-width: 4.6rem;
      }
      [data-fact="balance"],
      [data-fact="bet"],
      [data-fact="net"] {
        min-width: 4.4rem;
      }
      /* A phone: the money in one line; then game, code, times and ids flow, so that they take three lines. */
      @media (max-width: 30rem) {
        :host {
          display: flex;
          flex-wrap: wrap;
          align-items: baseline;
          gap: 0.05rem 0.6rem;
          padding: 0.2rem 0.6rem 0.25rem;
          font-size: 0.6875rem;
        }
        dl {
          gap: 0.05rem 0.6rem;
        }
        .money {
          flex-basis: 100%;
        }
        .about,
        .ids {
          display: contents;
        }
        .money dd {
          font-size: 0.875rem;
        }
        [data-fact="balance"],
        [data-fact="bet"],
        [data-fact="net"],
        [data-fact="code"] {
          min-width: 0;
        }
        .about dt {
          position: absolute;
          width: 1px;
          height: 1px;
          overflow: hidden;
          clip-path: inset(50%);
        }
        .about .said dt {
          position: static;
          width: auto;
          height: auto;
          clip-path: none;
        }
        .id {
          flex: 0 0 auto;
          flex-wrap: wrap;
        }
      }
      /* Three or four tables on a screen. */
      @media (min-width: 70rem) {
        :host([dense]) {
          font-size: 0.75rem;
          padding: 0 0.75rem 0.15rem;
        }
        :host([dense]),
        :host([dense]) dl {
          gap: 0 0.6rem;
        }
        :host([dense]) [data-fact] {
          min-width: 0;
        }
        :host([dense]) .clock:has([data-fact="local"]) {
          display: none;
        }
        :host([dense]) .money dd {
          font-size: 0.875rem;
        }
      }
    `,
  ];

  protected override render(): unknown {
    const { play, store } = this;
    const { session } = play;
    const { currency } = play;
    const latest = store.clock.latest();
    const now = new Date(latest ?? Date.now());
    const code = (play instanceof TablePlay ? play.table?.game_code : play.round?.game_code) ?? "";
    // A table has its name in the line above.
    const name = play instanceof TablePlay ? "" : (this.store.texts[play.game.ruleset.id]?.game_name ?? session.game_name ?? "");
    const isDemo = session.mode === "MODE_DEMO" || session.mode === "demo";
    return html`<dl class="money">
        ${this.fact("strip.balance", store.money(leftOf(play), currency), "balance")}
        ${this.fact("strip.bet", store.money(staked(play), currency), "bet")}
        ${this.fact("strip.net", store.net(netOf(play), currency), "net")}
      </dl>
      <dl class="about">
        ${name ? this.fact("strip.game", name) : nothing} ${this.fact("strip.code", code || "#–", "code")}
        ${this.fact("strip.elapsed", formatElapsed(play.elapsedMs), "elapsed", "said")}
        ${this.fact("strip.utc", `${now.toISOString().slice(11, 19)} UTC`, "utc", "clock")}
        ${this.fact("strip.local", now.toLocaleTimeString(store.language), "local", "clock")}
      </dl>
      <dl class="ids">
        ${this.fact("strip.session", session.regulator_session_id || session.session_id, "session", "id")}
        ${this.fact("strip.participation", session.regulator_participation_id || session.participation_id || "–", "participation", "id")}
        ${isDemo ? html`<div class="tag"><dt class="hidden-words">${this.t("strip.mode")}</dt><dd>${textOf(store.texts, play.game.ruleset.id, "modes", "MODE_DEMO")}</dd></div>` : nothing}
        ${session.test_regulator ? html`<div class="tag"><dt class="hidden-words">${this.t("strip.regulator")}</dt><dd title=${this.t("strip.test_regulator")}>${this.t("strip.test_ids")}</dd></div>` : nothing}
      </dl>`;
  }

  private fact(key: Parameters<StripElement["t"]>[0], value: string, id = "", kind = ""): TemplateResult {
    return html`<div class=${kind}><dt>${this.t(key)}</dt><dd data-fact=${id}>${value}</dd></div>`;
  }
}

/** All of the player's own bets of the round: before the deal those on the felt, then what the round has staked. */
function staked(play: Play): bigint {
  return play.round && !play.total ? ownStake(play.round) : play.total;
}

/** What can be staked still. Bets that a table has reserved are gone, also before its round takes them. */
function leftOf(play: Play): bigint {
  const { session } = play;
  return play.bettingOpen || session.open_round ? play.left : play.left - int(session.reserved_minor);
}

/** What the rounds that have ended brought or cost: a stake in play is no loss yet. */
function netOf(play: Play): bigint {
  const { session } = play;
  const open = session.open_round ?? (play instanceof SoloPlay ? play.open : undefined);
  return int(session.net_position_minor) + (open ? ownStake(open) : 0n);
}

define("rgs-strip", StripElement);
