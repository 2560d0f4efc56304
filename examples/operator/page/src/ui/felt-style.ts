/**
 * The look of a felt: cards and paytable above, spots below, the bar under them. Only the felt scrolls, and only where
 * a window is too small for it: what is said about the game and the bar stay where they are (F-3). Cards are as large as
 * the felt has room for.
 */

import { css } from "lit";

export const feltStyles = css`
  :host {
    display: grid;
    grid-template-rows: auto auto minmax(0, 1fr) auto;
    height: 100%;
    min-height: 0;
  }
  .felt {
    grid-row: 3;
    container: felt / size;
    overflow-x: clip;
    overflow-y: auto;
    background: radial-gradient(ellipse at 50% 30%, var(--felt-high), var(--felt) 75%);
    color: #fff;
  }
  .cloth {
    --side: 9.25rem;
    --rest: 17.25rem;
    --card-width: clamp(1.9rem, min((100cqw - var(--side) - 1.4rem) / 5.5, (100cqh - var(--rest)) / 4.2), 8rem);
    --card-gap: calc(var(--card-width) * 0.08);
    min-height: 100%;
    padding: 0.2rem 0.6rem;
    display: grid;
    gap: 0.35rem 0.5rem;
    grid-template-columns: minmax(0, 1fr) var(--side);
    grid-template-rows: 1fr auto auto auto;
    grid-template-areas: "hands side" "boxes boxes" "result result" "spots spots";
  }
  .boxed {
    --rest: 23rem;
  }
  .hands {
    grid-area: hands;
    align-content: space-evenly;
    display: grid;
    grid-template-columns: minmax(0, 1fr);
    gap: 0.35rem;
    justify-items: center;
  }
  rgs-boxes {
    grid-area: boxes;
  }
  rgs-result {
    grid-area: result;
  }
  rgs-spots {
    grid-area: spots;
  }
  .side {
    grid-area: side;
    align-self: start;
  }
  .hand {
    display: grid;
    gap: 0.15rem;
    justify-items: center;
  }
  .named {
    display: flex;
    flex-wrap: wrap;
    gap: 0 0.75rem;
    justify-content: center;
    align-content: start;
    text-align: center;
    text-wrap: balance;
    font-weight: 600;
    font-size: 0.8125rem;
    line-height: 1.2;
    /* Two lines: their place is there before a hand has its name. */
    min-height: 2.4em;
  }
  .head {
    grid-row: 2;
    background: var(--felt);
    color: #fff;
  }
  .head > * {
    padding-inline: 0.6rem;
  }
  .state {
    background: #fff3d6;
    color: #3d2a00;
    padding-block: 0.5rem;
    font-weight: 600;
    text-align: center;
  }
  .bar {
    grid-row: 4;
    z-index: 2;
    background: var(--panel);
    border-top: 1px solid var(--line);
    padding: 0.4rem 0.5rem calc(0.4rem + env(safe-area-inset-bottom));
    min-height: 8.8rem;
    display: grid;
    align-content: center;
  }
  .bar p {
    text-align: center;
  }
  .row.centred {
    justify-content: center;
  }
  /* A phone that lies on its side, or a page that is magnified: all of it scrolls, and the bar stays at the bottom. */
  @media (max-height: 32rem) {
    :host {
      height: auto;
    }
    .felt {
      container-type: inline-size;
      overflow: visible;
    }
    .cloth {
      --card-width: clamp(1.9rem, (100cqw - var(--side) - 1.4rem) / 5.5, 3.2rem);
    }
    .bar {
      position: sticky;
      bottom: 0;
      min-height: 0;
    }
  }
  @media (max-height: 20rem) {
    .bar {
      position: static;
    }
  }
  @container (min-width: 38rem) {
    .cloth {
      --side: 15rem;
      --rest: 18.75rem;
      padding: 0.6rem 1rem;
      gap: 0.4rem 1rem;
    }
    .boxed {
      --rest: 23.5rem;
    }
    .cloth {
      grid-template-areas: "hands side" "boxes side" "spots result" "spots result";
    }
    .named {
      font-size: 0.9375rem;
    }
    rgs-result {
      align-self: center;
      min-width: 0;
    }
  }
  /* A desktop: the dealer's cards beside the board, one's own beside the spots, the result under the paytable. */
  @container (min-width: 56rem) {
    .cloth {
      --side: 20rem;
      --card-width: clamp(2.5rem, min((100cqw - var(--side) - 8rem) / 8, (100cqh - 9.5rem) / 2.8), 8.5rem);
      padding: 1rem 2rem;
      gap: 0.75rem 2rem;
      grid-template-columns: auto minmax(0, 1fr) var(--side);
      grid-template-rows: minmax(0, 1fr) auto minmax(0, 1fr);
      grid-template-areas: "dealer board side" "boxes boxes side" "own spots result";
    }
    .boxed {
      --card-width: clamp(2.5rem, min((100cqw - var(--side) - 8rem) / 8, (100cqh - 17rem) / 2.8), 8.5rem);
    }
    .hands {
      display: contents;
    }
    .hand.dealer {
      grid-area: dealer;
    }
    .hand.board {
      grid-area: board;
    }
    .hand.own {
      grid-area: own;
    }
    .hand {
      align-content: center;
      gap: 0.4rem;
    }
    .named {
      font-size: 1rem;
      min-height: 2.4em;
      width: calc(var(--card-width) * 2.08 + 3rem);
    }
    .hand.board::after {
      content: "";
      height: 2.4rem;
    }
    rgs-spots {
      align-self: center;
      margin-bottom: 2.4rem;
    }
    rgs-result {
      align-self: start;
    }
    .bar {
      min-height: 9rem;
    }
  }
`;
