/** The settings: all are applied together, and stored with the profile (F-6). */

import { css, html } from "lit";

import { settingsOf, type Settings } from "../state/settings.js";
import { define, shared, StoreElement } from "./base.js";
import { NAMES } from "./sign-in.js";

export class SettingsElement extends StoreElement {
  static override styles = [
    shared,
    css`
      form {
        display: grid;
        gap: 1rem;
      }
      fieldset {
        border: 1px solid var(--line);
        border-radius: 0.5rem;
        display: grid;
        gap: 0.6rem;
        padding: 0.5rem 0.75rem 0.75rem;
        margin: 0;
      }
      legend {
        font-weight: 700;
      }
      label {
        display: flex;
        flex-wrap: wrap;
        gap: 0.5rem;
        align-items: center;
        justify-content: space-between;
      }
      label:has([type="checkbox"]) {
        flex-wrap: nowrap;
      }
      input[type="range"] {
        width: 12rem;
      }
    `,
  ];

  protected override render(): unknown {
    const { store } = this;
    const { settings } = store;
    const allowed = store.allowedLanguages;
    const check = (name: keyof Settings): unknown => html`<label>
      ${this.t(`settings.${name}` as Parameters<typeof this.t>[0])}
      <input type="checkbox" name=${name} .checked=${Boolean(settings[name])} />
    </label>`;
    const volume = (name: "voice_volume" | "game_volume"): unknown => html`<label>
      ${this.t(`settings.${name}`)}
      <input type="range" name=${name} min="0" max="100" step="5" .value=${String(settings[name])} />
    </label>`;
    const choice = (name: "motion" | "theme", values: readonly string[]): unknown => html`<label>
      ${this.t(`settings.${name}`)}
      <select name=${name}>
        ${values.map((value) => html`<option value=${value} ?selected=${settings[name] === value}>${this.t(`settings.${name}.${value}` as Parameters<typeof this.t>[0])}</option>`)}
      </select>
    </label>`;
    return html`<form @submit=${(event: Event) => this.save(event)}>
      <fieldset>
        <legend>${this.t("settings.general")}</legend>
        <label>
          ${this.t("settings.language")}
          <select name="language">
            ${allowed.map((each) => html`<option value=${each} lang=${each} ?selected=${each === store.language}>${NAMES[each] ?? each}</option>`)}
          </select>
        </label>
        ${check("chat")} ${check("keys")}
      </fieldset>
      <fieldset>
        <legend>${this.t("settings.look")}</legend>
        ${check("four_colour")} ${choice("motion", ["full", "reduced"])} ${choice("theme", ["auto", "light", "dark"])}
      </fieldset>
      <fieldset>
        <legend>${this.t("settings.audio")}</legend>
        ${check("sound")} ${check("voice")} ${volume("voice_volume")} ${check("effects")} ${volume("game_volume")}
      </fieldset>
      <button class="primary" data-does="apply">${this.t("settings.apply")}</button>
    </form>`;
  }

  private async save(event: Event): Promise<void> {
    event.preventDefault();
    const { store } = this;
    const form = event.target as HTMLFormElement;
    const stated: Record<string, unknown> = { ...store.settings };
    for (const field of form.elements as Iterable<HTMLInputElement>) {
      if (!field.name) continue;
      if (field.type === "checkbox") stated[field.name] = field.checked;
      else stated[field.name] = field.type === "range" ? Number(field.value) : field.value;
    }
    await store.saveSettings(settingsOf(stated));
    store.sound.muted = false;
    store.closeDialog();
  }
}

define("rgs-settings", SettingsElement);
