/** A window over the page: closed by its button, by Esc, and by a click beside it. */

import { css, html } from "lit";

import { define, shared, StoreElement } from "./base.js";

export class DialogElement extends StoreElement {
  static override properties = { ...StoreElement.properties, heading: {} };
  heading = "";

  static override styles = [
    shared,
    css`
      dialog {
        color: var(--ink);
        background: var(--panel);
        border: 1px solid var(--edge);
        border-radius: 0.75rem;
        padding: 0;
        width: min(52rem, calc(100vw - 1rem));
        max-width: none;
        max-height: calc(100dvh - 1rem);
      }
      dialog::backdrop {
        background: rgb(0 0 0 / 0.55);
      }
      .head {
        position: sticky;
        top: 0;
        z-index: 1;
        display: flex;
        align-items: center;
        gap: 0.5rem;
        padding: 0.4rem 0.4rem 0.4rem 1rem;
        background: var(--panel);
        border-bottom: 1px solid var(--line);
      }
      h2 {
        flex: 1;
      }
      .body {
        padding: 1rem;
        overflow-wrap: break-word;
      }
    `,
  ];

  protected override firstUpdated(): void {
    const dialog = this.renderRoot.querySelector("dialog");
    if (dialog && !dialog.open) dialog.showModal();
  }

  protected override render(): unknown {
    return html`<dialog aria-labelledby="heading" @close=${() => this.done()} @click=${(event: Event) => this.beside(event)}>
      <div class="head">
        <h2 id="heading">${this.heading}</h2>
        <button class="quiet" data-does="close" aria-label=${this.t("dialog.close")} @click=${() => this.close()}>✕</button>
      </div>
      <div class="body"><slot></slot></div>
    </dialog>`;
  }

  private close(): void {
    this.renderRoot.querySelector("dialog")?.close();
  }

  private beside(event: Event): void {
    if ((event.target as Element).localName === "dialog") this.close();
  }

  private done(): void {
    this.dispatchEvent(new CustomEvent("done"));
  }
}

define("rgs-dialog", DialogElement);
