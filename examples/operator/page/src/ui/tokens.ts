/** The colours, light and dark. Text on each has a contrast of at least 4.5 to 1. */

import { css } from "lit";

export const tokens = css`
  :host {
    color-scheme: light dark;
    --page: light-dark(#f1efe8, #101514);
    --panel: light-dark(#ffffff, #1a2220);
    --off: light-dark(#eceae2, #232d2a);
    --ink: light-dark(#18211e, #eef2ef);
    --muted: light-dark(#4b5853, #a9b6b0);
    --line: light-dark(#d3d7d2, #34403b);
    --edge: light-dark(#75817c, #7d8a84);
    --accent: light-dark(#0b6350, #46c3a3);
    --on-accent: light-dark(#ffffff, #06201a);
    --accent-ink: light-dark(#0a5a49, #63d3b5);
    --amber: light-dark(#b26a00, #ffc94d);
    --amber-ink: light-dark(#7a4900, #ffc94d);
    --red: light-dark(#b3261e, #ff8a80);
    --felt: light-dark(#0f5a49, #0a3a30);
    --felt-high: light-dark(#14705b, #0f4c3f);
    --focus: light-dark(#8a3ffc, #ffd54a);
    --focus-under: light-dark(#ffffff, #000000);
    font-family: "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
    /* As wide as Arial in every font: what fits on one machine fits on all. */
    font-size-adjust: ch-width 0.556;
    font-size: 1rem;
    line-height: 1.4;
  }
  :host([data-theme="light"]) {
    color-scheme: light;
  }
  :host([data-theme="dark"]) {
    color-scheme: dark;
  }
`;
