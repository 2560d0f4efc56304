/** What is always shown: game, ids, code, money, both times (R-1, R-3, F-3). */

import { css, html, nothing, type TemplateResult } from "lit";

import { formatElapsed } from "../model/clock.js";
import { ownStake } from "../model/rules.js";
import { int } from "../model/types.js";
import type { Play } from "../state/play.js";
import { TablePlay } from "../state/table.js";
import { define, shared, TickingElement } from "./base.js";

export class StripElement extends TickingElement {
  static override properties = { ...TickingElement.properties, play: { attribute: false } };
  play!: Play;

  static override styles = [
    shared,
    css`
      @media (max-width: 30rem) {
        :host {
          font-size: 0.75rem !important;
        }
      }
      :host {
        background: var(--panel);
        border-bottom: 1px solid var(--line);
        padding: 0.35rem 0.75rem;
        font-size: 0.8125rem;
        font-variant-numeric: tabular-nums;
      }
      dl {
        display: flex;
        flex-wrap: wrap;
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
      /* What changes by itself has its place: nothing beside it moves. */
      [data-fact="code"] {
        min-width: 4.6rem;
      }
      [data-fact="balance"],
      [data-fact="bet"],
      [data-fact="net"] {
        min-width: 4.4rem;
      }
      /* Three or four tables on a screen. */
      @media (min-width: 70rem) {
        :host([dense]) {
          display: flex;
          flex-wrap: wrap;
          gap: 0 1rem;
          align-items: baseline;
          font-size: 0.75rem;
          padding: 0.1rem 0.75rem 0.2rem;
        }
        :host([dense]) .ids {
          order: 1;
          gap: 0 0.6rem;
        }
      }
      .demo {
        border: 1px solid currentColor;
        border-radius: 0.3rem;
        padding: 0 0.3rem;
        font-weight: 700;
      }
    `,
  ];

  protected override render(): unknown {
    const { play, store } = this;
    this.toggleAttribute("dense", store.tables.length > 2);
    const { session } = play;
    const { currency } = play;
    const latest = store.clock.latest();
    const now = new Date(latest ?? Date.now());
    const code = (play instanceof TablePlay ? play.table?.game_code : play.round?.game_code) ?? "";
    // A table has its name in the line above.
    const name = play instanceof TablePlay ? "" : (this.store.texts[play.game.ruleset.id]?.game_name ?? session.game_name ?? "");
    return html`<dl class="money">
        ${this.fact("strip.balance", store.money(play.left, currency), "balance")}
        ${this.fact("strip.bet", store.money(staked(play), currency), "bet")}
        ${this.fact("strip.net", store.net(int(session.net_position_minor), currency), "net")}
        ${this.fact("strip.elapsed", formatElapsed(play.elapsedMs))}
      </dl>
      <dl class="ids">
        ${name ? this.fact("strip.game", name) : nothing} ${this.fact("strip.code", code || "–", "code")}
        ${this.fact("strip.utc", `${now.toISOString().slice(11, 19)} UTC`)}
        ${this.fact("strip.local", now.toLocaleTimeString(store.language))}
        ${this.fact("strip.session", session.regulator_session_id || session.session_id)}
        ${this.fact("strip.participation", session.regulator_participation_id || session.participation_id || "–")}
      </dl>
      ${session.mode === "MODE_DEMO" || session.mode === "demo" ? html`<span class="demo">${this.t("strip.demo")}</span>` : nothing}
      ${session.test_regulator ? html`<span class="muted">${this.t("strip.test_regulator")}</span>` : nothing}`;
  }

  private fact(key: Parameters<StripElement["t"]>[0], value: string, id = ""): TemplateResult {
    return html`<div><dt>${this.t(key)}</dt><dd data-fact=${id}>${value}</dd></div>`;
  }
}

/** All of the player's own bets of the round: before the deal those on the felt, then what the round has staked. */
function staked(play: Play): bigint {
  return play.round && !play.total ? ownStake(play.round) : play.total;
}

define("rgs-strip", StripElement);
