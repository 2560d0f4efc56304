/** The player's own limits, and the exclusion (R-8). A lower limit holds at once, a higher one after the delay. */

import { css, html, nothing, type TemplateResult } from "lit";

import { formatElapsed } from "../model/clock.js";
import { parseMoney, plainMoney } from "../model/money.js";
import { int } from "../model/types.js";
import { api, query } from "../state/api.js";
import "./currency.js";
import { define, shared, StoreElement } from "./base.js";

interface LimitsAnswer {
  limits?: Record<string, string>;
  pending_limits?: { name: string; value: string | null; due_ms: number | string }[];
  today?: { staked_minor?: string; returned_minor?: string; played_ms?: string };
  raise_delay_ms?: string;
}

const NAMES = ["loss_minor", "stake_minor", "deposit_minor", "duration_ms"] as const;
type LimitName = (typeof NAMES)[number];
const HOUR_MS = 3_600_000;
const UNITS: [string, number][] = [["hour", HOUR_MS], ["minute", 60_000]];

export class LimitsElement extends StoreElement {
  static override properties = { ...StoreElement.properties, answer: { state: true }, said: { state: true }, sure: { state: true } };
  private answer: LimitsAnswer = {};
  private said = "";
  private sure = 0;

  static override styles = [
    shared,
    css`
      form {
        display: grid;
        gap: 0.75rem;
        margin-bottom: 1.25rem;
      }
      label {
        display: flex;
        flex-wrap: wrap;
        gap: 0.25rem 0.75rem;
        align-items: center;
        justify-content: space-between;
      }
      .apart {
        display: inline-block;
        padding: 0.6rem 0;
      }
      input {
        width: 9rem;
        text-align: right;
      }
    `,
  ];

  private get currency(): { currency: string; exponent: number } {
    const { currency } = this.store;
    return { currency, exponent: this.store.exponent(currency) };
  }

  protected override firstUpdated(): void {
    void this.load();
  }

  /** A time in the largest unit that it is whole in: `24 hours`, `90 minutes`, `72 seconds`. */
  private span(ms: number): string {
    const [unit, unitMs] = UNITS.find(([, each]) => ms >= each && ms % each === 0) ?? ["second", 1000];
    const format = { style: "unit", unit, unitDisplay: "long", maximumFractionDigits: 0 } as const;
    return Math.ceil(ms / unitMs).toLocaleString(this.store.language, format);
  }

  protected override render(): unknown {
    const { today } = this.answer;
    const { currency } = this.currency;
    const { store } = this;
    const net = int(today?.returned_minor) - int(today?.staked_minor);
    return html`<rgs-currency .store=${store} @chosen=${() => this.load()}></rgs-currency>
      <p>
        ${this.t("limits.today", {
          staked: store.money(int(today?.staked_minor), currency),
          net: store.net(net, currency),
          time: formatElapsed(Number(int(today?.played_ms))),
        })}
      </p>
      <p role="status">${this.said ? html`<span class="warn">${this.said}</span>` : nothing}</p>
      <form @submit=${(event: Event) => this.save(event)}>
        <p class="muted">${this.t("limits.explain", { time: this.span(Number(this.answer.raise_delay_ms ?? 0)) })}</p>
        ${NAMES.map((name) => this.field(name))}
        <button class="primary" data-does="save">${this.t("limits.save")}</button>
      </form>
      ${this.exclusion()}
      ${store.links.responsible_play
        ? html`<p><a class="apart" href=${store.links.responsible_play} target="_blank" rel="noopener">${this.t("nav.responsible")}</a></p>`
        : nothing}`;
  }

  private field(name: LimitName): TemplateResult {
    const pending = this.answer.pending_limits?.find((each) => each.name === name);
    const due = pending ? new Date(Number(pending.due_ms)).toLocaleString(this.store.language) : "";
    const value = pending ? (pending.value === null ? this.t("limits.none") : this.shown(name, pending.value)) : "";
    return html`<label>
        <span>${this.t(`limits.${name}`)}</span>
        <input name=${name} inputmode="decimal" autocomplete="off" .value=${this.shown(name, this.answer.limits?.[name])} placeholder=${this.t("limits.none")} />
      </label>
      ${pending ? html`<p class="muted">${this.t("limits.pending", { value, time: due })}</p>` : nothing}`;
  }

  private shown(name: LimitName, value: string | undefined): string {
    if (value === undefined) return "";
    return name === "duration_ms" ? String(Number(value) / HOUR_MS) : plainMoney(BigInt(value), this.currency.exponent);
  }

  private exclusion(): TemplateResult {
    return html`<section class="stack">
      <h3>${this.t("limits.exclusion")}</h3>
      <p>${this.t("limits.exclusion_explain")}</p>
      <div class="row">
        ${[1, 7, 30, 180].map((days) => html`<button data-days=${days} @click=${() => (this.sure = days)}>${days === 1 ? this.t("limits.one_day") : this.t("limits.days", { days })}</button>`)}
      </div>
      ${this.sure
        ? html`<div class="warn row">
            <span>${this.t("limits.sure", { days: this.sure === 1 ? this.t("limits.one_day") : this.t("limits.days", { days: this.sure }) })}</span>
            <button data-does="exclude" @click=${() => this.exclude()}>${this.t("limits.yes")}</button>
            <button @click=${() => (this.sure = 0)}>${this.t("limits.no")}</button>
          </div>`
        : nothing}
    </section>`;
  }

  private async load(): Promise<void> {
    try {
      this.answer = await api<LimitsAnswer>("GET", `/api/limits${query({ currency: this.currency.currency })}`);
    } catch (error) {
      this.said = this.store.wordsOf(error);
    }
  }

  private async save(event: Event): Promise<void> {
    event.preventDefault();
    const data = new FormData(event.target as HTMLFormElement);
    const changed: Record<string, string | number | null> = {};
    for (const name of NAMES) {
      const text = String(data.get(name) ?? "").trim();
      if (text === this.shown(name, this.answer.limits?.[name])) continue;
      const value = this.parsed(name, text);
      if (value === undefined) {
        this.said = this.t("buy.no_amount", { text });
        return;
      }
      changed[name] = value;
    }
    if (Object.keys(changed).length === 0) return;
    try {
      await api("POST", "/api/limits", { currency: this.currency.currency, ...changed });
      this.said = this.t("limits.saved");
      await this.load();
    } catch (error) {
      this.said = this.store.wordsOf(error);
    }
  }

  /** What the API takes: a number, or null for no limit. */
  private parsed(name: LimitName, text: string): number | null | undefined {
    if (text === "") return null;
    if (name === "duration_ms") {
      const hours = parseMoney(text, 2);
      return hours === undefined ? undefined : Number((hours * BigInt(HOUR_MS)) / 100n);
    }
    const amount = parseMoney(text, this.currency.exponent);
    return amount === undefined ? undefined : Number(amount);
  }

  private async exclude(): Promise<void> {
    try {
      await api("POST", "/api/exclusion", { days: this.sure });
    } catch (error) {
      this.said = this.store.wordsOf(error);
    }
    this.sure = 0;
  }
}

define("rgs-limits", LimitsElement);
