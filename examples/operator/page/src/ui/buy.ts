/** Buying the right of participation (R-2): the stake at this table, which comes from the player's account. */

import { css, html, nothing } from "lit";

import { parseMoney, plainMoney } from "../model/money.js";
import { int } from "../model/types.js";
import type { Play } from "../state/play.js";
import { define, shared, StoreElement } from "./base.js";

export class BuyElement extends StoreElement {
  static override properties = { ...StoreElement.properties, play: { attribute: false }, wrong: { state: true } };
  play!: Play;
  private wrong = "";

  static override styles = [
    shared,
    css`
      form {
        display: grid;
        gap: 0.5rem;
        justify-items: center;
        text-align: center;
      }
      input {
        width: 8rem;
        text-align: right;
      }
      .row {
        justify-content: center;
      }
      [role="alert"] {
        font-weight: 600;
      }
    `,
  ];

  protected override render(): unknown {
    const { play, store } = this;
    if (play.ended) return html`<p>${this.t("buy.ended")}</p><button class="primary" @click=${() => store.go("lobby")}>${this.t("nav.lobby")}</button>`;
    const { most } = this;
    if (int(this.balance?.amount_minor) === 0n) return this.empty();
    const exponent = store.exponent(play.currency);
    return html`<form @submit=${(event: Event) => this.submit(event)}>
      <label for="amount">${this.t("buy.title", { amount: store.money(most, play.currency) })}</label>
      <div class="row">
        <input
          id="amount"
          inputmode="decimal"
          autocomplete="off"
          aria-describedby="wrong"
          .value=${plainMoney(this.usual(most), exponent)}
        />
        <button class="primary" data-does="buy" ?disabled=${play.busy}>${this.t("buy.button")}</button>
      </div>
      <p class="muted">${this.t("buy.account", { amount: this.account })}</p>
      <p id="wrong" role="alert">${this.wrong || nothing}</p>
    </form>`;
  }

  /** Nothing to buy with: the cashier is the operator's (F-9). Whoever comes back from it finds the account as it is. */
  private empty(): unknown {
    const { cashier } = this.store.links;
    return html`<p>${this.t("buy.empty")}</p>
      ${cashier ? html`<p><a class="apart" href=${cashier} target="_blank" rel="noopener">${this.t("nav.cashier")}</a></p>` : nothing}`;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("focus", this.back);
  }

  override disconnectedCallback(): void {
    removeEventListener("focus", this.back);
    super.disconnectedCallback();
  }

  private readonly back = (): void => {
    void this.store.refreshMe().catch((error: unknown) => this.store.fail(error));
  };

  /** The account covers it, and the jurisdiction's cap allows it. */
  private get most(): bigint {
    const left = int(this.play.session.purchase_left_minor);
    const account = int(this.balance?.amount_minor);
    return left < account ? left : account;
  }

  private get balance(): { amount_minor: string } | undefined {
    return this.store.me?.balances?.find((each) => each.currency === this.play.currency);
  }

  private get account(): string {
    return this.store.money(int(this.balance?.amount_minor), this.play.currency);
  }

  /** A beginning that lasts: a hundred of the least antes, no more than may be bought. */
  private usual(most: bigint): bigint {
    const least = (this.play.rules[0]?.min ?? 100n) * 100n;
    return least < most ? least : most;
  }

  private async submit(event: Event): Promise<void> {
    event.preventDefault();
    const { play, store, most } = this;
    const text = this.renderRoot.querySelector("input")?.value ?? "";
    const amount = parseMoney(text, store.exponent(play.currency));
    if (amount === undefined || amount === 0n) this.wrong = this.t("buy.no_amount", { text });
    else if (amount > most) this.wrong = this.t("buy.too_much", { amount: store.money(most, play.currency) });
    else {
      this.wrong = "";
      if (await play.buy(amount)) await store.refreshMe().catch((error: unknown) => store.fail(error));
    }
  }
}

define("rgs-buy", BuyElement);
