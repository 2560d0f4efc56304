/** The history of the whole account: last ended first, filtered, and one round whole (R-5). */

import { css, html, nothing, type TemplateResult } from "lit";

import { netOf } from "../model/rules.js";
import { labelOf, textOf } from "../model/texts.js";
import { bare, int, type RoundRecord, type RoundSummary } from "../model/types.js";
import { api, query } from "../state/api.js";
import { define, shared, StoreElement } from "./base.js";
import { cardStyles } from "./cards.js";
import { hands } from "./hands.js";
import "./proof.js";

export class HistoryElement extends StoreElement {
  static override properties = {
    ...StoreElement.properties,
    rounds: { state: true },
    record: { state: true },
    wrong: { state: true },
    next: { state: true },
    loading: { state: true },
  };
  private rounds: RoundSummary[] = [];
  private record: { record: RoundRecord; summary: RoundSummary } | undefined;
  private wrong = "";
  private next = "";
  private loading = false;
  private filter: Record<string, string> = {};

  static override styles = [
    shared,
    cardStyles,
    css`
      :host {
        --card-width: clamp(2.4rem, 11vw, 3.5rem);
      }
      table {
        font-size: 0.9375rem;
      }
      form {
        display: flex;
        flex-wrap: wrap;
        gap: 0.5rem;
        align-items: end;
        margin-bottom: 0.75rem;
      }
      label {
        display: grid;
        font-size: 0.8125rem;
        flex: 1 1 8rem;
      }
      input,
      select {
        width: 100%;
      }
      th,
      td {
        padding: 0.3rem 0.25rem;
      }
      .scroll {
        overflow-x: auto;
      }
      .felt {
        background: var(--felt);
        color: #fff;
        border-radius: 0.75rem;
        padding: 0.75rem;
        display: grid;
        gap: 0.5rem;
        justify-items: center;
      }
      .hand {
        display: grid;
        justify-items: center;
      }
      .named {
        display: flex;
        flex-wrap: wrap;
        gap: 0 0.75rem;
        justify-content: center;
        font-weight: 600;
        text-align: center;
      }
      td button {
        min-height: 2rem;
        padding: 0.1rem 0.5rem;
        text-align: left;
      }
      dl {
        display: grid;
        grid-template-columns: auto 1fr;
        gap: 0.1rem 0.75rem;
      }
      dt {
        color: var(--muted);
      }
    `,
  ];

  protected override firstUpdated(): void {
    void this.load("");
  }

  protected override render(): unknown {
    if (this.record) return this.whole(this.record.record, this.record.summary);
    return html`${this.filters()}
      ${this.wrong ? html`<p class="warn" role="alert">${this.wrong}</p>` : nothing}
      ${this.rounds.length === 0 && !this.loading && !this.wrong ? html`<p>${this.t("history.none")}</p>` : this.list()}
      ${this.next ? html`<button data-does="older" @click=${() => this.load(this.next)}>${this.t("history.older")}</button>` : nothing}`;
  }

  private filters(): TemplateResult {
    const { store } = this;
    return html`<form @submit=${(event: Event) => this.find(event)}>
      <label>${this.t("history.from")}<input type="date" name="from" /></label>
      <label>${this.t("history.to")}<input type="date" name="to" /></label>
      <label>
        ${this.t("strip.game")}
        <select name="game">
          <option value="">${this.t("history.all")}</option>
          ${(store.catalog.games ?? []).map((game) => html`<option value=${game.ruleset.id}>${store.texts[game.ruleset.id]?.game_name ?? game.name}</option>`)}
        </select>
      </label>
      <label>${this.t("strip.code")}<input name="code" placeholder="#21:10:10" autocomplete="off" /></label>
      <button data-does="find">${this.t("history.find")}</button>
    </form>`;
  }

  private list(): TemplateResult {
    const { store } = this;
    return html`<div class="scroll" tabindex="0" role="region" aria-label=${this.t("nav.history")}>
      <table>
        <thead>
          <tr>
            <th scope="col">${this.t("history.date")}</th>
            <th scope="col">${this.t("strip.game")}</th>
            <th scope="col" class="number">${this.t("history.staked")}</th>
            <th scope="col" class="number">${this.t("history.returned")}</th>
          </tr>
        </thead>
        <tbody>
          ${this.rounds.map((round) => {
            const currency = round.currency ?? "EUR";
            const name = store.texts[round.game ?? ""]?.game_name ?? round.game ?? "";
            return html`<tr>
              <td>${this.date(round.end_time ?? round.start_time)}</td>
              <td><button data-round=${round.round_id} @click=${() => this.show(round)}>${name} ${round.game_code}</button></td>
              <td class="number">${store.money(int(round.staked_minor), currency)}</td>
              <td class="number">${store.money(int(round.returned_minor), currency)}</td>
            </tr>`;
          })}
        </tbody>
      </table>
    </div>`;
  }

  private whole(record: RoundRecord, summary: RoundSummary): TemplateResult {
    const { store } = this;
    const { round } = record;
    const game = store.game(summary.game);
    const currency = summary.currency ?? "EUR";
    const money = (value: string | undefined): string => store.money(int(value), currency);
    const id = summary.game ?? "";
    return html`<div class="stack" data-record>
      <button data-does="back" @click=${() => this.close()}>← ${this.t("nav.history")}</button>
      <dl>
        <dt>${this.t("strip.game")}</dt><dd>${store.texts[id]?.game_name ?? id}</dd>
        <dt>${this.t("strip.code")}</dt><dd>${summary.game_code}</dd>
        <dt>${this.t("history.date")}</dt><dd>${this.date(summary.start_time)} (${summary.start_time?.slice(0, 19).replace("T", " ")} UTC)</dd>
        <dt>${this.t("strip.session")}</dt><dd>${summary.regulator_session_id || summary.session_id}</dd>
        <dt>${this.t("strip.participation")}</dt><dd>${summary.regulator_participation_id || "–"}</dd>
        <dt>${this.t("history.round")}</dt><dd><code>${summary.round_id}</code></dd>
        <dt>${this.t("history.state")}</dt><dd>${labelOf(store.texts, id, "round_statuses", summary.status)}</dd>
      </dl>
      ${game && round ? html`<div class="felt">${hands(store, game, round)}</div>` : nothing}
      <h3>${this.t("history.decisions")}</h3>
      <ul>
        ${(round?.actions ?? []).map((action) => {
          const by = action.by === "DECIDED_BY_PLAYER" ? "" : ` (${textOf(store.texts, id, "decided_by", action.by)})`;
          const cost = int(action.amount_minor) > 0n ? ` ${money(action.amount_minor)}` : "";
          return html`<li>
            ${action.time?.slice(11, 19)} UTC · ${labelOf(store.texts, id, "phases", action.phase)}:
            ${textOf(store.texts, id, "actions", action.action)}${cost}${by}
          </li>`;
        })}
      </ul>
      <table>
        <thead>
          <tr>
            <th scope="col">${this.t("history.bet")}</th>
            <th scope="col" class="number">${this.t("history.staked")}</th>
            <th scope="col" class="number">${this.t("history.returned")}</th>
            <th scope="col">${this.t("history.result")}</th>
          </tr>
        </thead>
        <tbody>
          ${(round?.settlement ?? []).map(
            (bet) => html`<tr>
              <th scope="row">${labelOf(store.texts, id, "bets", bet.bet)}</th>
              <td class="number">${money(bet.stake_minor)}</td>
              <td class="number">${money(bet.returned_minor)}</td>
              <td>${labelOf(store.texts, id, "results", bet.result)}${bet.row ? ` (${textOf(store.texts, id, "rows", bet.row)})` : nothing}</td>
            </tr>`,
          )}
          <tr>
            <th scope="row">${this.t("history.sum")}</th>
            <td class="number">${money(summary.staked_minor)}</td>
            <td class="number">${money(summary.returned_minor)}</td>
            <td>${store.net(round ? netOf(round) : int(summary.returned_minor) - int(summary.staked_minor), currency)}</td>
          </tr>
          ${round?.grant_id
            ? html`<tr data-granted>
                <th scope="row">${this.t("free_bet.campaign")}</th>
                <td class="number">${money(round.granted_minor)}</td>
                <td class="number">${money(round.reclaimed_minor)}</td>
                <td></td>
              </tr>`
            : nothing}
        </tbody>
      </table>
      ${bare(summary.status, "ROUND_STATUS_") === "OPEN"
        ? nothing
        : html`<rgs-proof .store=${store} .roundId=${summary.round_id} .sessionId=${summary.session_id ?? ""}></rgs-proof>`}
    </div>`;
  }

  private date(time: string | undefined): string {
    return time ? new Date(time).toLocaleString(this.store.language, { dateStyle: "short", timeStyle: "medium" }) : "";
  }

  private close(): void {
    this.record = undefined;
  }

  private async find(event: Event): Promise<void> {
    event.preventDefault();
    const data = new FormData(event.target as HTMLFormElement);
    const text = (name: string): string => String(data.get(name) ?? "").trim();
    const code = text("code");
    // The days are the player's own: the API has times.
    this.filter = {
      from: text("from") && new Date(`${text("from")}T00:00:00`).toISOString(),
      to: text("to") && new Date(new Date(`${text("to")}T00:00:00`).getTime() + 86_400_000).toISOString(),
      game: text("game"),
      code: code && !code.startsWith("#") ? `#${code}` : code,
    };
    await this.load("");
  }

  private async load(token: string): Promise<void> {
    this.loading = true;
    this.wrong = "";
    try {
      const path = `/api/rounds${query({ ...this.filter, page_token: token })}`;
      const answer = await api<{ rounds?: RoundSummary[]; next_page_token?: string }>("GET", path);
      this.rounds = token ? [...this.rounds, ...(answer.rounds ?? [])] : (answer.rounds ?? []);
      this.next = answer.next_page_token ?? "";
    } catch (error) {
      this.refused(error);
    } finally {
      this.loading = false;
    }
  }

  private async show(summary: RoundSummary): Promise<void> {
    try {
      const path = `/api/rounds/${encodeURIComponent(summary.round_id)}${query({ session_id: summary.session_id })}`;
      const record = await api<RoundRecord>("GET", path);
      this.record = { record, summary: record.summary ?? summary };
    } catch (error) {
      this.refused(error);
    }
  }

  private refused(error: unknown): void {
    this.wrong = this.store.wordsOf(error);
  }
}

define("rgs-history", HistoryElement);
