/** The cards, drawn by us: a rank and a suit that can be told apart at the size of a phone, and a back. */

import { css, html, nothing, svg, type SVGTemplateResult, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";

import { cardOf, faceOf } from "../model/cards.js";
import { maySkip } from "../model/jurisdiction.js";
import type { Store } from "../state/store.js";
import type { WordKey } from "../words/index.js";

const SUIT_PATHS: Record<string, string> = {
  h: "M12 21.5C5 15.4 2 11.7 2 8 2 4.7 4.4 2.5 7.2 2.5c2 0 3.8 1.1 4.8 3 1-1.9 2.8-3 4.8-3C19.6 2.5 22 4.7 22 8c0 3.7-3 7.4-10 13.5z",
  s: "M12 2c7 5.5 10 9 10 12.4 0 2.8-2 4.7-4.6 4.7-1.6 0-3-.7-3.9-2 .2 2 .9 3.5 2.2 4.9H8.3c1.3-1.4 2-2.9 2.2-4.9-.9 1.3-2.3 2-3.9 2C4 19.100 2 17.200 2 14.400 2 11 5 7.500 12 2z",
  d: "M12 1.500 20.500 12 12 22.500 3.500 12z",
  c: "M12 2a5 5 0 0 1 4.300 7.500 5 5 0 1 1-2.900 7.300c.2 2.100.9 3.700 2.200 5.200H8.400c1.300-1.500 2-3.100 2.200-5.200A5 5 0 1 1 7.700 9.500 5 5 0 0 1 12 2z",
};

const CROWNS: Record<string, string> = {
  K: "M2 15 1 4l6 5 5-8 5 8 6-5-1 11z",
  Q: "M3 15 1 7c4 2 6 0 6-4 2 5 8 5 10 0 0 4 2 6 6 4l-2 8z",
  J: "M3 15c0-9 4-12 11-14-1 4 2 5 6 6-1 3 0 5 1 8z",
};

export function cardName(store: Store, code: string): string {
  const { rank, suit } = cardOf(code);
  return store.t("card", { rank: store.t(`rank.${rank}` as WordKey), suit: store.t(`suit.${suit}` as WordKey) });
}

/** One card. `counts`: one of the five of the player's hand; `dim`: of neither hand; `dealers`: one of the dealer's five. */
export function card(store: Store, code: string, kind: "" | "counts" | "dim" = "", dealers = false): TemplateResult {
  const { rank, suit } = cardOf(code);
  const colour = `${suit}${store.settings.four_colour ? " four" : ""}`;
  return html`<svg class="card ${kind} ${colour}" viewBox="0 0 60 84" role="img" aria-label=${cardName(store, code)}>
    <rect x="1" y="1" width="58" height="82" rx="6" class="face" />
    <text x=${rank === "T" ? 4 : 7} y="30" class="rank ${rank === "T" ? "ten" : ""}">${faceOf(rank)}</text>
    <path d=${SUIT_PATHS[suit]} transform="translate(33 8) scale(0.9)" />
    <path d=${SUIT_PATHS[suit]} transform="translate(14 40) scale(1.5)" opacity=${rank in CROWNS ? 0.25 : 1} />
    ${crown(rank)} ${dealers ? svg`<path class="mark" d="M2 73h56v6a4 4 0 0 1-4 4H6a4 4 0 0 1-4-4z" />` : nothing}
  </svg>`;
}

function crown(rank: string): SVGTemplateResult | typeof nothing {
  const path = CROWNS[rank];
  return path ? svg`<path d=${path} transform="translate(15 49) scale(1.3)" />` : nothing;
}

export function back(label: string): TemplateResult {
  return html`<svg class="card back" viewBox="0 0 60 84" role="img" aria-label=${label}>
    <rect x="1" y="1" width="58" height="82" rx="6" class="face" />
    <rect x="5" y="5" width="50" height="74" rx="4" class="inner" />
    <path
      class="lattice"
      d="M5 20 20 5M5 37 37 5M5 54 54 5M5 71 55 21M12 79 55 38M29 79 55 55M46 79 55 72M40 5 55 20M23 5 55 37M6 5 55 54M5 21 55 71M5 38 48 79M5 55 31 79M5 72 14 79"
    />
  </svg>`;
}

/** Cards in a row: those that are known, then backs or empty places. */
export function row(
  store: Store,
  cards: readonly string[] | undefined,
  places: number,
  options: { five?: readonly string[] | undefined; dealers?: readonly string[] | undefined; backs?: boolean; label: string },
): TemplateResult {
  const known = cards ?? [];
  const kindOf = (code: string): "" | "counts" | "dim" => {
    if (!options.five?.length && !options.dealers?.length) return "";
    if (options.five?.includes(code)) return "counts";
    return options.dealers?.includes(code) ? "" : "dim";
  };
  const empty = Array.from({ length: Math.max(0, places - known.length) }, (_, index) => index);
  return html`<div class="cards" role="group" aria-label=${options.label}>
    ${repeat(known, (code) => code, (code) => card(store, code, kindOf(code), options.dealers?.includes(code)))}
    ${empty.map(() => (options.backs ? back(store.t("card.back")) : html`<span class="place"></span>`))}
  </div>`;
}

/** A click cuts the turning of cards short (F rows), where the jurisdiction allows that. */
export function skipTurns(store: Store, roots: readonly (ShadowRoot | null)[]): void {
  if (!maySkip(store.jurisdiction)) return;
  for (const root of roots) {
    for (const one of root?.getAnimations() ?? []) if ((one as CSSAnimation).animationName === "turn") one.finish();
  }
}

export const cardStyles = css`
  .cards {
    display: flex;
    gap: var(--card-gap, 0.35rem);
    justify-content: center;
    min-height: calc(var(--card-width, 4rem) * 1.4);
  }
  .card,
  .place {
    width: var(--card-width, 4rem);
    height: calc(var(--card-width, 4rem) * 1.4);
    flex: none;
  }
  .place {
    border: 2px dashed rgb(255 255 255 / 0.35);
    border-radius: 10%;
  }
  .card {
    fill: #16202a;
    color: #16202a;
    filter: drop-shadow(0 1px 2px rgb(0 0 0 / 0.4));
    animation: turn 250ms ease-out;
  }
  .card .face {
    fill: #fdfdfb;
    stroke: #6b7471;
    stroke-width: 1;
  }
  .card.h,
  .card.d {
    fill: #b3121d;
  }
  .card.four.d {
    fill: #1450b8;
  }
  .card.four.c {
    fill: #0a6b2c;
  }
  .card text {
    font: 700 29px/1 "Segoe UI", Roboto, Helvetica, Arial, sans-serif;
  }
  .card text.ten {
    letter-spacing: -3px;
  }
  .card.counts .face {
    stroke: #ffd54a;
    stroke-width: 5;
  }
  .card.dim .face {
    fill: #c9d0cc;
  }
  .card .mark {
    fill: #b4532a;
  }
  .card.back .face {
    fill: #f4efe2;
  }
  .card.back .inner {
    fill: #7a2430;
  }
  .card.back .lattice {
    fill: none;
    stroke: #e3c08a;
    stroke-width: 1.4;
  }
  /* How the five cards of each hand are marked, said where each hand is named. */
  .key {
    display: inline-block;
    width: 0.8em;
    height: 1em;
    margin-right: 0.4em;
    vertical-align: -0.12em;
    border-radius: 0.15em;
    background: #fdfdfb;
  }
  .key.own {
    border: 0.18em solid #ffd54a;
  }
  .key.dealers {
    border-bottom: 0.34em solid #b4532a;
  }
  @keyframes turn {
    from {
      transform: rotateY(90deg) translateY(-0.4rem);
    }
  }
  :host([still]) .card {
    animation: none;
  }
  @media (prefers-reduced-motion: reduce) {
    .card {
      animation: none;
    }
  }
`;
