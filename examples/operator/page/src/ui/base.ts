/** What all elements of the page share: the store, and the look of buttons, fields and panels. */

import { css, LitElement, type PropertyDeclarations, type PropertyValues } from "lit";

import type { Store } from "../state/store.js";
import type { WordKey } from "../words/index.js";

export abstract class StoreElement extends LitElement {
  static override properties: PropertyDeclarations = { store: { attribute: false } };

  store!: Store;
  private off: (() => void) | undefined;

  t(key: WordKey, values: Record<string, string | number> = {}): string {
    return this.store.t(key, values);
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (changed.has("store") && this.isConnected) this.listen();
  }

  override connectedCallback(): void {
    super.connectedCallback();
    if (this.store) this.listen();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.off?.();
    this.off = undefined;
  }

  private listen(): void {
    this.off?.();
    this.off = this.store.subscribe(() => this.requestUpdate());
  }
}

const TICK_MS = 250;
const ticking = new Set<TickingElement>();
let timer = 0;

/**
 * An element that shows passing time: it is drawn anew four times a second while the page is seen. All of them tick
 * together, so that the browser lays the page out once.
 */
export abstract class TickingElement extends StoreElement {
  override connectedCallback(): void {
    super.connectedCallback();
    ticking.add(this);
    timer ||= window.setInterval(() => {
      if (!document.hidden) for (const element of ticking) element.requestUpdate();
    }, TICK_MS);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    ticking.delete(this);
    if (ticking.size > 0) return;
    window.clearInterval(timer);
    timer = 0;
  }
}

/** Defines an element once: an operator may load the page's module twice. */
export function define(name: string, element: CustomElementConstructor): void {
  if (!customElements.get(name)) customElements.define(name, element);
}

export const shared = css`
  :host {
    box-sizing: border-box;
    display: block;
    color: var(--ink);
    font: inherit;
  }
  *,
  *::before,
  *::after {
    box-sizing: border-box;
  }
  [hidden] {
    display: none !important;
  }
  h1,
  h2,
  h3,
  p,
  ul,
  dl,
  dd {
    margin: 0;
    padding: 0;
  }
  h1 {
    font-size: 1.35rem;
  }
  h2 {
    font-size: 1.1rem;
  }
  h3 {
    font-size: 1rem;
  }
  ul {
    list-style: none;
  }
  a {
    color: var(--accent-ink);
  }
  button,
  .button {
    font: inherit;
    font-weight: 600;
    color: var(--ink);
    background: var(--panel);
    border: 1px solid var(--edge);
    border-radius: 0.5rem;
    min-height: 2.75rem;
    padding: 0.4rem 0.8rem;
    cursor: pointer;
    touch-action: manipulation;
    text-decoration: none;
  }
  button.primary {
    background: var(--accent);
    border-color: var(--accent);
    color: var(--on-accent);
  }
  button.quiet {
    background: transparent;
    border-color: transparent;
    color: inherit;
  }
  button:hover:not(:disabled) {
    filter: brightness(1.08);
  }
  button:disabled {
    cursor: not-allowed;
    color: var(--muted);
    background: var(--off);
    border-color: var(--line);
    border-style: dashed;
  }
  :focus-visible {
    outline: 3px solid var(--focus);
    outline-offset: 2px;
    box-shadow: 0 0 0 2px var(--focus-under);
  }
  input,
  select {
    font: inherit;
    color: var(--ink);
    background: var(--panel);
    border: 1px solid var(--edge);
    border-radius: 0.5rem;
    min-height: 2.75rem;
    padding: 0.3rem 0.6rem;
    max-width: 100%;
  }
  input[type="checkbox"] {
    min-height: 0;
    width: 1.35rem;
    height: 1.35rem;
    accent-color: var(--accent);
  }
  input[type="range"] {
    padding: 0;
    accent-color: var(--accent);
  }
  table {
    border-collapse: collapse;
    width: 100%;
    font-variant-numeric: tabular-nums;
  }
  th,
  td {
    text-align: left;
    padding: 0.3rem 0.5rem;
    border-bottom: 1px solid var(--line);
  }
  .number {
    text-align: right;
  }
  .muted {
    color: var(--muted);
  }
  .panel {
    background: var(--panel);
    border: 1px solid var(--line);
    border-radius: 0.75rem;
    padding: 1rem;
  }
  .row {
    display: flex;
    flex-wrap: wrap;
    gap: 0.5rem;
    align-items: center;
  }
  .stack {
    display: grid;
    grid-template-columns: minmax(0, 1fr);
    gap: 0.75rem;
  }
  .warn {
    border-left: 0.3rem solid var(--amber);
    padding: 0.5rem 0.75rem;
    background: var(--off);
  }
  .hidden-words {
    position: absolute;
    width: 1px;
    height: 1px;
    overflow: hidden;
    clip-path: inset(50%);
    white-space: nowrap;
  }
  code {
    font-family: ui-monospace, monospace;
    font-size: 0.85em;
    overflow-wrap: anywhere;
  }
`;
