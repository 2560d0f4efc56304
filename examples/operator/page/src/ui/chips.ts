/** Chips, drawn by us. The number stands on each; colour is never all that tells two apart. */

import { css, html, type TemplateResult } from "lit";

const COLOURS = ["#5b6770", "#8a5a1f", "#a3292f", "#1f5fa8", "#1c7048", "#5e3a9c", "#2b2b2b", "#9c2f78"];

export function chipFace(text: string, index: number): TemplateResult {
  const size = text.length > 3 ? 15 : 18;
  return html`<svg class="chip" viewBox="0 0 60 60" aria-hidden="true">
    <circle cx="30" cy="30" r="28" fill=${COLOURS[index % COLOURS.length] ?? "#2b2b2b"} />
    <circle cx="30" cy="30" r="25" fill="none" stroke="#fff" stroke-width="6" stroke-dasharray="9.800 16.400" />
    <circle cx="30" cy="30" r="18" fill="#fff" />
    <text x="30" y="36" text-anchor="middle" font-size=${size}>${text}</text>
  </svg>`;
}

/** The chip of the rack that is nearest below an amount: its colour is that of the stack. */
export function indexFor(amount: bigint, chips: readonly bigint[]): number {
  return Math.max(0, chips.findLastIndex((chip) => chip <= amount));
}

export const chipStyles = css`
  .chip {
    width: 100%;
    height: 100%;
    display: block;
  }
  .chip text {
    font-family: "Segoe UI", Roboto, Helvetica, Arial, sans-serif;
    font-weight: 700;
    fill: #14201c;
  }
`;
