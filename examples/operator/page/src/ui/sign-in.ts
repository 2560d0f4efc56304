/** Signing in, and signing up. */

import { css, html, nothing } from "lit";

import { RequestError } from "../model/connection.js";
import { api } from "../state/api.js";
import { LANGUAGES } from "../state/settings.js";
import { define, shared, StoreElement } from "./base.js";

export class SignInElement extends StoreElement {
  static override properties = { ...StoreElement.properties, fresh: { state: true }, wrong: { state: true }, busy: { state: true } };
  private fresh = false;
  private wrong = "";
  private busy = false;

  static override styles = [
    shared,
    css`
      :host {
        max-width: 26rem;
        margin: 2rem auto;
        padding: 0 1rem;
      }
      form {
        display: grid;
        gap: 0.75rem;
      }
      label {
        display: grid;
        gap: 0.2rem;
      }
      [role="alert"]:empty {
        display: none;
      }
    `,
  ];

  protected override render(): unknown {
    const field = (name: "name" | "password" | "nickname", autocomplete: string, type = "text"): unknown => html`<label>
      ${this.t(`sign.${name}`)}
      <input name=${name} type=${type} autocomplete=${autocomplete} required aria-describedby="wrong" />
    </label>`;
    return html`<form class="panel" @submit=${(event: Event) => this.submit(event)}>
      <h1>${this.t(this.fresh ? "sign.up" : "sign.in")}</h1>
      ${field("name", "username")}
      ${field("password", this.fresh ? "new-password" : "current-password", "password")}
      ${this.fresh ? field("nickname", "nickname") : nothing}
      <p id="wrong" class="warn" role="alert">${this.wrong}</p>
      <button class="primary" data-does="sign" ?disabled=${this.busy}>${this.t(this.fresh ? "sign.up" : "sign.in")}</button>
      <button type="button" class="quiet" data-does="other" @click=${() => this.other()}>
        ${this.t(this.fresh ? "sign.known" : "sign.new")}
      </button>
      <label>
        ${this.t("settings.language")}
        <select @change=${(event: Event) => this.store.useLanguage((event.target as HTMLSelectElement).value)}>
          ${LANGUAGES.map((each) => html`<option value=${each} lang=${each} ?selected=${each === this.store.language}>${NAMES[each]}</option>`)}
        </select>
      </label>
    </form>`;
  }

  private other(): void {
    this.fresh = !this.fresh;
    this.wrong = "";
  }

  private async submit(event: Event): Promise<void> {
    event.preventDefault();
    const data = new FormData(event.target as HTMLFormElement);
    const text = (name: string): string => String(data.get(name) ?? "");
    const body: Record<string, string> = { name: text("name"), password: text("password") };
    if (this.fresh) Object.assign(body, { nickname: text("nickname"), language: this.store.language });
    this.busy = true;
    try {
      await api("POST", this.fresh ? "/api/sign-up" : "/api/sign-in", body);
      await this.store.enter();
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      this.wrong = this.store.errorWords(error);
    } finally {
      this.busy = false;
    }
  }
}

/** Each language in its own words. */
export const NAMES: Record<string, string> = { it: "Italiano", de: "Deutsch", en: "English" };

define("rgs-sign-in", SignInElement);
