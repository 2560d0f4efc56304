/** The rules of a game: its sentences, limits, paytables, returns, the ranking of hands, and the final-decision clause. */

import { css, html, nothing, type TemplateResult } from "lit";

import { mayRepeat } from "../model/jurisdiction.js";
import { labelOf, textOf } from "../model/texts.js";
import { int, type Game } from "../model/types.js";
import { define, shared, StoreElement } from "./base.js";
import { card, cardStyles } from "./cards.js";

/** An example of each category, best first (H-2). */
const RANKING: [string, string[]][] = [
  ["royal_flush", ["As", "Ks", "Qs", "Js", "Ts"]],
  ["straight_flush", ["9h", "8h", "7h", "6h", "5h"]],
  ["quads", ["Ac", "Ad", "Ah", "As", "7d"]],
  ["full_house", ["Kc", "Kd", "Kh", "6s", "6d"]],
  ["flush", ["Qc", "Tc", "8c", "5c", "3c"]],
  ["straight", ["9s", "8d", "7c", "6h", "5s"]],
  ["trips", ["Kd", "Ks", "Kh", "9c", "4d"]],
  ["two_pair", ["Ah", "Ac", "Ks", "Kd", "8c"]],
  ["pair", ["Td", "Ts", "Ac", "7h", "2d"]],
  ["high_card", ["As", "Jd", "8c", "6h", "3s"]],
];

export class RulesElement extends StoreElement {
  static override properties = { ...StoreElement.properties, game: { attribute: false } };
  game: Game | undefined;

  static override styles = [
    shared,
    cardStyles,
    css`
      :host {
        --card-width: 2.4rem;
        --card-gap: 0.15rem;
      }
      section {
        margin-bottom: 1.25rem;
        display: grid;
        gap: 0.5rem;
      }
      ol {
        margin: 0;
        padding-left: 1.4rem;
      }
      .tables {
        display: grid;
        grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr));
        gap: 1rem;
      }
      caption {
        text-align: left;
        font-weight: 700;
      }
      .ranking {
        display: grid;
        grid-template-columns: repeat(auto-fit, minmax(14.5rem, 1fr));
        gap: 0.75rem;
      }
      .cards {
        justify-content: flex-start;
      }
      .card {
        animation: none;
      }
    `,
  ];

  protected override render(): unknown {
    const { game } = this;
    const games = this.store.catalog.games ?? [];
    if (!game) return html`${games.map((each) => html`<h3>${this.name(each)}</h3>`)}`;
    const id = game.ruleset.id;
    const { store } = this;
    const currency = game.currency ?? "EUR";
    const sentences = store.texts[id]?.rules ?? game.rules ?? [];
    return html`<section>
        <h3>${this.name(game)}</h3>
        <ol>${sentences.map((sentence) => html`<li>${sentence}</li>`)}</ol>
        <p>${this.t("rules.final")}</p>
        <p>${this.t("rules.malfunction")}</p>
      </section>
      <section>
        <h3>${this.t("rules.limits")}</h3>
        <ul>
          ${(game.limits ?? []).map(
            (limits) => html`<li>
              ${labelOf(store.texts, id, "bets", limits.bet)}: ${store.money(int(limits.min_minor), currency)} – ${store.money(int(limits.max_minor), currency)}
              (${this.t("rules.step", { amount: store.money(int(limits.step_minor), currency) })})
            </li>`,
          )}
        </ul>
      </section>
      <section>
        <h3>${this.t("rules.paytables")}</h3>
        <div class="tables">${(game.paytables ?? []).map((table) => this.paytable(game, table))}</div>
      </section>
      <section>
        <h3>${this.t("rules.returns")}</h3>
        <table>
          <tbody>
            ${(game.returns ?? []).map(
              (figure) => html`<tr>
                <th scope="row">${figure.names?.[store.language] ?? figure.name}</th>
                <td class="number">${figure.percent.replace(".", store.language === "en" ? "." : ",")} %</td>
                <td>${textOf(store.texts, id, "return_bases", figure.basis)}</td>
              </tr>`,
            )}
          </tbody>
        </table>
        <p class="muted">${this.t("rules.ruleset", { id, version: game.ruleset.version ?? "" })} <code>${game.ruleset.sha256}</code></p>
      </section>
      <section>
        <h3>${this.t("rules.ranking")}</h3>
        <div class="ranking">
          ${RANKING.map(
            ([category, cards]) => html`<div>
              <p>${labelOf(store.texts, id, "rows", category)}</p>
              <div class="cards" role="group" aria-label=${labelOf(store.texts, id, "rows", category)}>${cards.map((code) => card(store, code))}</div>
            </div>`,
          )}
        </div>
      </section>
      ${this.keys()}`;
  }

  private name(game: Game): string {
    return this.store.texts[game.ruleset.id]?.game_name ?? game.name ?? game.ruleset.id;
  }

  private paytable(game: Game, table: NonNullable<Game["paytables"]>[number]): TemplateResult {
    const id = game.ruleset.id;
    return html`<table>
      <caption>${labelOf(this.store.texts, id, "bets", table.bet)}</caption>
      <tbody>
        ${(table.rows ?? []).map(
          (row) => html`<tr>
            <th scope="row">${labelOf(this.store.texts, id, "rows", row.category)}</th>
            <td class="number">${textOf(this.store.texts, id, "pays", row.pays)}</td>
          </tr>`,
        )}
      </tbody>
    </table>`;
  }

  private keys(): TemplateResult {
    const keys = ["chip", "space", "undo", "delete", "escape"] as const;
    const repeats = mayRepeat(this.store.jurisdiction);
    return html`<section>
      <h3>${this.t("rules.keys")}</h3>
      <table>
        <tbody>
          ${keys.map((key) =>
            key === "space" && !repeats
              ? nothing
              : html`<tr><th scope="row">${this.t(`key.${key}`)}</th><td>${this.t(`key.${key}.does`)}</td></tr>`,
          )}
        </tbody>
      </table>
    </section>`;
  }
}

define("rgs-rules", RulesElement);
