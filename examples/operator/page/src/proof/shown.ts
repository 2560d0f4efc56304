/** Whether what the page has shown of a round is what its signed final says. */

import type { RoundView } from "../model/types.js";
import { payloadOf } from "./receipt.js";

interface Final {
  cards?: { hole_cards?: string[]; dealer_cards?: string[]; board?: string[] };
  hole_cards?: string[];
  settlement?: { bet: string; stake_minor: string; returned_minor: string; result: string }[];
  staked_minor?: string;
  returned_minor?: string;
  round_id?: string;
}

/** What differs, in words; empty where nothing does. */
export function differences(document: string, shownJson: string): string[] {
  const shown = JSON.parse(shownJson) as RoundView;
  const final = payloadOf(document, "final") as Final;
  const table = payloadOf(document, "table_final") as Final;
  const cards = final.cards ?? table.cards ?? {};
  const found: string[] = [];
  const compare = (name: string, seen: string, signed: string): void => {
    if (seen !== signed) found.push(`${name}: the page showed ${seen || "nothing"}, ${signed || "nothing"} is signed`);
  };
  const list = (values: readonly string[] | undefined): string => (values ?? []).join(" ");
  compare("round_id", shown.round_id, final.round_id ?? "");
  compare("returned_minor", shown.returned_minor ?? "0", final.returned_minor ?? "0");
  compare("staked_minor", shown.staked_minor ?? "0", final.staked_minor ?? "0");
  // A void round shows no cards where the deck was never revealed.
  if (shown.hole_cards?.length) compare("hole_cards", list(shown.hole_cards), list(final.hole_cards ?? cards.hole_cards));
  if (shown.dealer_cards?.length) compare("dealer_cards", list(shown.dealer_cards), list(cards.dealer_cards));
  if (shown.board?.length && cards.board) compare("board", list(shown.board), list(cards.board));
  for (const bet of shown.settlement ?? []) {
    const signed = final.settlement?.find((each) => each.bet === bet.bet);
    compare(`${bet.bet} returned_minor`, bet.returned_minor ?? "0", signed?.returned_minor ?? "0");
  }
  return found;
}
