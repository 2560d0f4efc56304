/** The look of a felt: cards above, spots below, the paytable beside or under them, the bar always at the bottom. */

import { css } from "lit";

export const feltStyles = css`
  :host {
    display: grid;
    grid-template-rows: auto 1fr auto;
    min-height: 100%;
  }
  .felt {
    grid-template-columns: minmax(0, 1fr);
    --card-width: clamp(2.5rem, min(14.5vw, 6.2vh), 5rem);
    background: radial-gradient(ellipse at 50% 30%, var(--felt-high), var(--felt) 75%);
    color: #fff;
    padding: 0.5rem 0.6rem 0.6rem;
    display: grid;
    gap: 0.35rem;
    align-content: start;
  }
  .hands {
    display: grid;
    grid-template-columns: minmax(0, 1fr);
    gap: 0.35rem;
    justify-items: center;
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
    font-weight: 600;
    min-height: 1.3rem;
  }
  .bar {
    position: sticky;
    bottom: 0;
    z-index: 2;
    background: var(--panel);
    border-top: 1px solid var(--line);
    padding: 0.6rem 0.5rem calc(0.6rem + env(safe-area-inset-bottom));
    min-height: 8.8rem;
    display: grid;
    align-content: center;
  }
  .bar p {
    text-align: center;
  }
  @media (max-width: 30rem) {
    .felt {
      --card-width: clamp(2.5rem, min(14.5vw, 5.6vh), 5rem);
      padding: 0.3rem 0.6rem;
      gap: 0.2rem;
    }
    .bar {
      padding-top: 0.4rem;
    }
  }
  .row.centred {
    justify-content: center;
  }
  .state {
    background: #fff3d6;
    color: #3d2a00;
    border-radius: 0.5rem;
    padding: 0.5rem 0.75rem;
    font-weight: 600;
    text-align: center;
  }
  @container (min-width: 56rem) {
    .felt {
      --card-width: clamp(2.5rem, 7vh, 5rem);
      grid-template-columns: minmax(0, 1fr) minmax(14rem, 19rem);
      grid-template-areas: "hands head" "hands side" "result side" "spots side";
      grid-template-rows: auto 1fr auto auto;
      gap: 0.75rem 1.5rem;
      padding: 1rem 1.5rem;
    }
    .felt > .head {
      grid-area: head;
    }
    .felt > .hands {
      grid-area: hands;
    }
    .felt > rgs-result {
      grid-area: result;
    }
    .felt > rgs-spots {
      grid-area: spots;
    }
    .felt > .side {
      grid-area: side;
    }
  }
`;
