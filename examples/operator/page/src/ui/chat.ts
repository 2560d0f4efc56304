/** The chat of a table: a window that can be moved, resized and closed (F-11). Enter or the arrow sends. */

import { css, html, nothing } from "lit";

import { textOf } from "../model/texts.js";
import type { TablePlay } from "../state/table.js";
import { define, shared, StoreElement } from "./base.js";

const STEP = 24;

export class ChatElement extends StoreElement {
  static override properties = { ...StoreElement.properties, play: { attribute: false } };
  play!: TablePlay;
  private grab: { x: number; y: number } | undefined;

  static override styles = [
    shared,
    css`
      :host {
        position: fixed;
        right: 1rem;
        bottom: 11rem;
        z-index: 5;
      }
      .window {
        width: min(21rem, calc(100vw - 2rem));
        height: 19rem;
        min-width: 13rem;
        min-height: 10rem;
        max-width: 100vw;
        max-height: 80dvh;
        resize: both;
        overflow: hidden;
        display: grid;
        grid-template-rows: auto 1fr auto;
        padding: 0;
        box-shadow: 0 0.5rem 1.5rem rgb(0 0 0 / 0.35);
      }
      .head {
        display: flex;
        align-items: center;
        border-bottom: 1px solid var(--line);
      }
      .handle {
        flex: 1;
        text-align: left;
        cursor: move;
        touch-action: none;
      }
      .lines {
        overflow-y: auto;
        padding: 0.5rem 0.75rem;
        display: flex;
        flex-direction: column;
        gap: 0.25rem;
      }
      .lines p {
        overflow-wrap: anywhere;
      }
      form {
        display: flex;
        gap: 0.3rem;
        padding: 0.4rem;
        padding-right: 1.1rem;
      }
      input {
        flex: 1;
        min-width: 0;
      }
      .own {
        font-weight: 600;
      }
    `,
  ];

  protected override updated(): void {
    this.play.unread = 0;
    const lines = this.renderRoot.querySelector(".lines");
    if (lines) lines.scrollTop = lines.scrollHeight;
  }

  protected override render(): unknown {
    const { play, store } = this;
    const spoken = (code: string): string => textOf(store.texts, play.game.ruleset.id, "dealer_lines", code);
    // Other players' messages can be hidden; the dealer's lines and one's own stay.
    const lines = play.lines.filter((line) => store.settings.chat || line.code || line.is_own);
    return html`<section class="window panel" aria-label=${this.t("chat.title", { table: play.name })}>
      <div class="head">
        <button
          class="quiet handle"
          aria-label=${this.t("chat.move")}
          @pointerdown=${(event: PointerEvent) => this.take(event)}
          @pointermove=${(event: PointerEvent) => this.drag(event)}
          @pointerup=${() => (this.grab = undefined)}
          @keydown=${(event: KeyboardEvent) => this.nudge(event)}
        >
          ⠿ ${this.t("chat.button")}
        </button>
        <button class="quiet" data-does="close" aria-label=${this.t("dialog.close")} @click=${() => store.closeDialog()}>✕</button>
      </div>
      <div class="lines" tabindex="0" role="log" aria-live="off" aria-label=${this.t("chat.button")}>
        ${lines.map((line) =>
          line.code
            ? html`<p class="muted">${spoken(line.code)}</p>`
            : html`<p class=${line.is_own ? "own" : ""}><span class="muted">${line.nickname}:</span> ${line.text}</p>`,
        )}
        ${store.settings.chat ? nothing : html`<p class="muted">${this.t("chat.hidden")}</p>`}
      </div>
      <form @submit=${(event: Event) => this.send(event)}>
        <input maxlength="200" autocomplete="off" aria-label=${this.t("chat.message")} placeholder=${this.t("chat.message")} />
        <button class="primary" data-does="send" aria-label=${this.t("chat.send")}>➤</button>
      </form>
      ${play.note ? html`<p class="warn" role="alert">${play.note.text}</p>` : nothing}
    </section>`;
  }

  private async send(event: Event): Promise<void> {
    event.preventDefault();
    const field = this.renderRoot.querySelector("input");
    const text = field?.value.trim() ?? "";
    if (field && text && (await this.play.say(text))) field.value = "";
  }

  private take(event: PointerEvent): void {
    const box = this.getBoundingClientRect();
    this.grab = { x: event.clientX - box.left, y: event.clientY - box.top };
    (event.target as Element).setPointerCapture(event.pointerId);
  }

  private drag(event: PointerEvent): void {
    if (this.grab) this.moveTo(event.clientX - this.grab.x, event.clientY - this.grab.y);
  }

  private nudge(event: KeyboardEvent): void {
    const by = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] }[event.key];
    if (!by) return;
    event.preventDefault();
    const box = this.getBoundingClientRect();
    this.moveTo(box.left + (by[0] ?? 0), box.top + (by[1] ?? 0));
  }

  /** By properties of the element's style, which the content security policy allows. */
  private moveTo(left: number, top: number): void {
    const box = this.getBoundingClientRect();
    const within = (value: number, most: number): string => `${Math.max(0, Math.min(value, Math.max(0, most)))}px`;
    this.style.left = within(left, innerWidth - box.width);
    this.style.top = within(top, innerHeight - box.height);
    this.style.right = "auto";
    this.style.bottom = "auto";
  }
}

define("rgs-chat", ChatElement);
