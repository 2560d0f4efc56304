/** A game for one player: the felt, and the bar for betting and deciding. */

import { html, nothing, type TemplateResult } from "lit";

import { textOf } from "../model/texts.js";
import type { SoloPlay } from "../state/solo.js";
import { define, shared, StoreElement } from "./base.js";
import { cardStyles, skipTurns } from "./cards.js";
import { feltStyles } from "./felt-style.js";
import { hands } from "./hands.js";
import "./buy.js";
import "./decide.js";
import "./paytable.js";
import "./rack.js";
import "./result.js";
import "./spots.js";
import "./strip.js";

export class SoloElement extends StoreElement {
  static override properties = { ...StoreElement.properties, play: { attribute: false } };
  play!: SoloPlay;

  static override styles = [shared, cardStyles, feltStyles];

  constructor() {
    super();
    this.addEventListener("pointerdown", () => skipTurns(this.store, [this.shadowRoot]));
  }

  protected override render(): unknown {
    const { play, store } = this;
    const { round } = play;
    const still = store.settings.motion === "reduced";
    this.toggleAttribute("still", still);
    return html`<rgs-strip .store=${store} .play=${play}></rgs-strip>
      <div class="head">${this.state()}</div>
      <section class="felt" tabindex="0" aria-label=${this.t("felt.label")}>
        <div class="cloth">
          <div class="hands">${hands(store, play.game, round)}</div>
          <rgs-result ?still=${still} .store=${store} .play=${play}></rgs-result>
          <rgs-spots ?still=${still} .store=${store} .play=${play}></rgs-spots>
          <rgs-paytable class="side" .store=${store} .game=${play.game} .round=${round}></rgs-paytable>
        </div>
      </section>
      <div class="bar" data-bar>${this.bar()}</div>`;
  }

  /** What holds the game up, above the felt. */
  private state(): unknown {
    const { play } = this;
    const { round } = play;
    return html`
        ${round?.paused ? this.paused(round.malfunction_code) : nothing}
        ${play.takenOver ? html`<p class="state">${this.t("state.other_device")}</p>` : nothing}
    `;
  }

  private paused(code: string | undefined): TemplateResult {
    const why = textOf(this.store.texts, this.play.game.ruleset.id, "malfunctions", code);
    return html`<p class="state" data-state="paused">${this.t("state.paused", { code: why })}</p>`;
  }

  private bar(): TemplateResult {
    const { play, store } = this;
    if (play.needsParticipation || play.ended) return html`<rgs-buy .store=${store} .play=${play}></rgs-buy>`;
    if (play.open?.paused) return html`<p>${this.t("state.paused_next")}</p>`;
    if (play.open) {
      return html`<rgs-decide
        .store=${store}
        .play=${play}
        .round=${play.open}
        .deadline=${play.open.deadline}
        @decide=${(event: CustomEvent<string>) => play.act(event.detail)}
      ></rgs-decide>`;
    }
    return html`<rgs-rack .store=${store} .play=${play}></rgs-rack>`;
  }
}

define("rgs-solo", SoloElement);
