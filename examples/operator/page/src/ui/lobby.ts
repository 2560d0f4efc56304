/** The lobby: games for one player, and tables with limits, seats and state (T-7). It works while seated, too. */

import { css, html, nothing, type TemplateResult } from "lit";

import { mayPlayDemo } from "../model/jurisdiction.js";
import { betRules } from "../model/rules.js";
import { labelOf } from "../model/texts.js";
import { int, type FreeBet, type Game, type TableEntry } from "../model/types.js";
import { define, shared, StoreElement } from "./base.js";
import "./currency.js";

export class LobbyElement extends StoreElement {
  static override properties = { ...StoreElement.properties, busy: { state: true } };
  private busy = false;

  static override styles = [
    shared,
    css`
      :host {
        max-width: 70rem;
        width: 100%;
        margin: 0 auto;
        padding: 1rem;
      }
      .list {
        display: grid;
        grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr));
        gap: 0.75rem;
        margin: 0.5rem 0 1.5rem;
      }
      li {
        display: flex;
        flex-direction: column;
        gap: 0.35rem;
      }
      li .row {
        margin-top: auto;
        padding-top: 0.25rem;
      }
      .free {
        border-left: 0.3rem solid var(--accent);
        padding-left: 0.5rem;
        font-weight: 600;
      }
      h3 {
        overflow-wrap: anywhere;
      }
      /* What a table does changes while it is read: there is room for two lines of it. */
      .now {
        min-height: 2lh;
      }
    `,
  ];

  protected override firstUpdated(): void {
    void this.store.openLobby(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.store.closeLobby(this);
  }

  protected override render(): unknown {
    const { store } = this;
    const games = (store.catalog.games ?? []).filter((game) => !game.table_only);
    return html`<h2>${this.t("lobby.solo")}</h2>
      <rgs-currency .store=${store}></rgs-currency>
      <ul class="list">
        ${games.map((game) => this.game(game))}
      </ul>
      <h2>${this.t("lobby.tables")}</h2>
      ${store.lobby.length ? nothing : html`<p>${this.t("lobby.no_tables")}</p>`}
      <ul class="list">
        ${store.lobby.map((entry) => this.table(entry))}
      </ul>`;
  }

  private game(game: Game): TemplateResult {
    const { store } = this;
    return html`<li class="panel" data-game=${game.ruleset.id}>
      <h3>${store.texts[game.ruleset.id]?.game_name ?? game.name}</h3>
      <p class="muted">${this.limits(game)}</p>
      ${store.freeBets.of(game.ruleset.id).map((each) => this.freeBet(each))}
      <div class="row">
        <button class="primary" data-does="play" ?disabled=${this.busy} @click=${() => this.go({ game: game.ruleset.id })}>
          ${this.t("lobby.play")}
        </button>
        ${mayPlayDemo(store.jurisdiction)
          ? html`<button data-does="demo" ?disabled=${this.busy} @click=${() => this.go({ game: game.ruleset.id }, "demo")}>${labelOf(store.texts, game.ruleset.id, "modes", "MODE_DEMO")}</button>`
          : nothing}
        <button @click=${() => store.open("rules", { game: game.ruleset.id })}>${this.t("nav.rules")}</button>
      </div>
    </li>`;
  }

  private table(entry: TableEntry): TemplateResult {
    const { store } = this;
    const game = store.game(entry.game);
    const sits = store.tables.some((play) => play.tableId === entry.table);
    const others = store.tables.length > 0 && !sits;
    const room = store.tables.length < store.sessions.tablesMax;
    const state = labelOf(store.texts, entry.game ?? "", "table_states", entry.state);
    const what = { game: entry.game ?? "", table: entry.table };
    return html`<li class="panel" data-table=${entry.table}>
      <h3>${entry.names?.[store.language] ?? entry.names?.["en"] ?? entry.table}</h3>
      <p class="muted">${game ? this.limits(game, entry) : ""}</p>
      <p class="now">
        ${state}${this.players(entry)}${entry.boxes ? ` · ${this.t("lobby.boxes", { free: entry.boxes_free ?? 0, boxes: entry.boxes })}` : nothing}
      </p>
      <div class="row">
        <button class="primary" data-does="play" ?disabled=${this.busy || !game} @click=${() => this.go(what)}>
          ${this.t(sits ? "lobby.back_to" : others ? "lobby.switch" : "lobby.enter")}
        </button>
        ${others && room && entry.tables_beside
          ? html`<button data-does="beside" ?disabled=${this.busy} @click=${() => this.go(what, "real", true)}>${this.t("lobby.beside")}</button>`
          : nothing}
        <button @click=${() => store.open("rules", { game: entry.game ?? "" })}>${this.t("nav.rules")}</button>
      </div>
    </li>`;
  }

  private freeBet(one: FreeBet): TemplateResult {
    const { store } = this;
    const amount = store.money(int(one.stake_minor), one.currency ?? "");
    const time = new Date(one.expiry_time ?? "").toLocaleString(store.language, { dateStyle: "short", timeStyle: "short" });
    return html`<p class="free" data-free-bet=${one.grant_id}>${this.t("free_bet.until", { amount, time })}</p>`;
  }

  private players(entry: TableEntry): string {
    const count = entry.players_at_least ?? "0";
    return ` · ${this.t(count === "0" ? "lobby.nobody" : "lobby.players", { count })}`;
  }

  private limits(game: Game, entry?: TableEntry): string {
    const currency = entry?.currency ?? this.store.currency;
    const [ante] = betRules(game, entry).filter((rule) => rule.required);
    if (!ante) return "";
    const { store } = this;
    const bet = labelOf(store.texts, game.ruleset.id, "bets", ante.bet);
    return this.t("lobby.limits", { bet, min: store.money(ante.min, currency), max: store.money(ante.max, currency) });
  }

  private async go(what: { game: string; table?: string }, mode: "real" | "demo" = "real", beside = false): Promise<void> {
    this.busy = true;
    await this.store.sessions.launch(what, mode, beside);
    this.busy = false;
  }
}

define("rgs-lobby", LobbyElement);
