/** The account to play from, where the player has several: each with what is on it. */

import { css, html, nothing } from "lit";

import { int } from "../model/types.js";
import { define, shared, StoreElement } from "./base.js";

export class CurrencyElement extends StoreElement {
  static override styles = [
    shared,
    css`
      label {
        display: flex;
        flex-wrap: wrap;
        gap: 0.25rem 0.6rem;
        align-items: center;
        margin: 0.5rem 0;
      }
    `,
  ];

  protected override render(): unknown {
    const { store } = this;
    const balances = store.me?.balances ?? [];
    if (balances.length < 2) return nothing;
    return html`<label
      >${this.t("currency.account")}
      <select name="currency" @change=${(event: Event) => this.choose(event)}>
        ${balances.map(
          (each) => html`<option value=${each.currency} .selected=${each.currency === store.currency}>
            ${each.currency} · ${store.money(int(each.amount_minor), each.currency)}
          </option>`,
        )}
      </select>
    </label>`;
  }

  private choose(event: Event): void {
    this.store.chooseCurrency((event.target as HTMLSelectElement).value);
    this.dispatchEvent(new CustomEvent("chosen"));
  }
}

define("rgs-currency", CurrencyElement);
