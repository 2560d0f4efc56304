/** The decision window: each option with its cost, the combination so far, and what silence will do (S2). */

import { css, html, nothing, type TemplateResult } from "lit";

import { secondsLeft } from "../model/clock.js";
import { ofTwo } from "../model/cards.js";
import { defaultOf } from "../model/rules.js";
import { labelOf, textOf } from "../model/texts.js";
import { int, type LegalAction, type RoundView } from "../model/types.js";
import type { Play } from "../state/play.js";
import { handWords } from "../words/hand.js";
import { define, shared, TickingElement } from "./base.js";
import { feltTexts } from "./felt-texts.js";

export class DecideElement extends TickingElement {
  static override properties = {
    ...TickingElement.properties,
    play: { attribute: false },
    round: { attribute: false },
    deadline: { attribute: false },
  };
  play!: Play;
  round!: RoundView;
  /** When silence decides, where there is a clock. */
  deadline: string | undefined;

  static override styles = [
    shared,
    css`
      :host {
        display: grid;
        gap: 0.4rem;
        justify-items: center;
        text-align: center;
      }
      h2 {
        font-size: 1rem;
      }
      .options {
        display: flex;
        flex-wrap: wrap;
        gap: 0.5rem;
        justify-content: center;
        width: 100%;
      }
      .options button {
        flex: 1 1 5.5rem;
        max-width: 12rem;
        min-height: 3.4rem;
        display: grid;
        line-height: 1.2;
        padding: 0.3rem 0.4rem;
      }
      .cost {
        font-weight: 400;
        font-size: 0.8125rem;
        font-variant-numeric: tabular-nums;
      }
      .silence {
        font-size: 0.875rem;
      }
      /* Three or four tables on a screen: what silence does stands beside the heading. */
      @media (min-width: 70rem) {
        :host([dense]) {
          grid-template-columns: auto auto;
          justify-content: space-between;
          align-items: baseline;
          gap: 0.2rem 0.5rem;
          padding-inline: 0.5rem;
        }
        :host([dense]) h2,
        :host([dense]) .silence {
          font-size: 0.8125rem;
          text-align: left;
        }
        :host([dense]) .options {
          grid-area: 2 / 1 / auto / span 2;
        }
        :host([dense]) .options button {
          min-height: 2.75rem;
          max-width: none;
        }
      }
    `,
  ];

  protected override render(): unknown {
    const { round } = this;
    this.toggleAttribute("dense", this.store.tables.length > 2);
    return html`<h2>${this.t("decide.title")}${this.combination()}</h2>
      <div class="options" role="group" aria-label=${this.t("decide.title")}>
        ${(round.legal_actions ?? []).map((action) => this.option(action))}
      </div>
      <p class="silence">${this.silence()}</p>`;
  }

  private combination(): string {
    const { game } = this.play;
    const { words, texts } = feltTexts(this.store, game);
    const two = ofTwo(this.round.hole_cards ?? []);
    const hand = this.round.player_hand ?? (two && { category: two.category, cards: [...(this.round.hole_cards ?? [])] });
    if (!hand?.category) return "";
    return `: ${handWords(words, textOf(texts, game.ruleset.id, "hands", hand.category), hand)}`;
  }

  private option(action: LegalAction): TemplateResult {
    const { play, store } = this;
    const game = play.game.ruleset.id;
    const cost = int(action.cost_minor);
    const why = action.available ? "" : textOf(store.texts, game, "unavailable", action.reason);
    return html`<button
      class=${cost > 0n && action.available ? "primary" : ""}
      data-action=${action.action}
      ?disabled=${!action.available || play.busy}
      @click=${() => this.dispatchEvent(new CustomEvent("decide", { detail: action.action }))}
    >
      <span>${labelOf(store.texts, game, "actions", action.action)}</span>
      <span class="cost">${cost > 0n ? store.money(cost, play.currency) : this.t("decide.free")}</span>
      ${why ? html`<span class="cost">${why}</span>` : nothing}
    </button>`;
  }

  private silence(): string {
    const { play, store } = this;
    const silent = defaultOf(play.game, this.round);
    const action = silent ? textOf(store.texts, play.game.ruleset.id, "actions", `ACTION_${silent}`) : "";
    const left = store.clock.left(this.deadline);
    if (left !== undefined) return this.t("decide.silence_in", { action, seconds: secondsLeft(left) });
    return action ? this.t("decide.no_clock", { action }) : this.t("decide.no_clock_at_all");
  }
}

define("rgs-decide", DecideElement);
