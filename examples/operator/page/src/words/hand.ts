/**
 * A poker hand in words, with the ranks that make it: "two pair, sevens and sixes, ten kicker". Against another hand of
 * the same kind, as many kickers are named as it takes to see which is the better one.
 */

import { cardOf, RANKS } from "../model/cards.js";
import type { Hand } from "../model/types.js";
import type { WordKey, Words } from "./index.js";

/** How many of the ranks make the hand itself; those behind them are kickers. */
const MAIN: Record<string, number> = {
  ...{ straight_flush: 1, quads: 1, full_house: 2, flush: 1, straight: 1 },
  ...{ trips: 1, two_pair: 2, pair: 1, high_card: 1 },
};

/** The ranks of a hand, those that count first: by how many cards have them, then by their height. */
export function ranksOf(hand: Hand): string[] {
  const counts = new Map<string, number>();
  for (const code of hand.cards ?? []) counts.set(cardOf(code).rank, (counts.get(cardOf(code).rank) ?? 0) + 1);
  const ranks = [...counts].sort(([one, times], [other, more]) => more - times || RANKS.indexOf(other) - RANKS.indexOf(one));
  const sorted = ranks.map(([rank]) => rank);
  // The ace below the two (H-3).
  const isLow = /^straight/.test(hand.category ?? "") && sorted[0] === "A" && sorted[1] === "5";
  return isLow ? [...sorted.slice(1), "A"] : sorted;
}

/** `named` is the name of the hand's category, such as "two pair". */
export function handWords(words: Words, named: string, hand: Hand, against?: Hand): string {
  const { category = "" } = hand;
  const main = MAIN[category];
  const ranks = ranksOf(hand);
  const [first, second] = ranks;
  if (main === undefined || first === undefined) return named;
  const one = (rank: string): string => words.get(`rank.${rank}` as WordKey);
  const many = (rank: string): string => words.get(`ranks.${rank}` as WordKey);
  const isMany = !["high_card", "straight", "flush", "straight_flush"].includes(category);
  const text = words.get(`hand.${category}` as WordKey, {
    hand: named,
    first: isMany ? many(first) : one(first),
    second: second === undefined ? "" : many(second),
  });
  const kickers = kickersOf(hand, ranks.slice(main), against).map(one);
  if (kickers.length === 0) return text;
  return words.get(kickers.length === 1 ? "hand.kicker" : "hand.kickers", { hand: text, kickers: kickers.join(", ") });
}

/** The first kicker; against a hand that is the same so far, all up to the one that differs. */
function kickersOf(hand: Hand, kickers: string[], against: Hand | undefined): string[] {
  const isDrawnOut = /^(straight|full_house)/.test(hand.category ?? "");
  if (isDrawnOut || kickers.length === 0) return [];
  const plain = ["high_card", "flush"].includes(hand.category ?? "") ? 0 : 1;
  if (!against || against.category !== hand.category) return kickers.slice(0, plain);
  const theirs = ranksOf(against);
  const ours = ranksOf(hand);
  const differs = ours.findIndex((rank, at) => rank !== theirs[at]);
  const main = ours.length - kickers.length;
  return differs < 0 ? kickers.slice(0, plain) : kickers.slice(0, Math.max(plain, differs - main + 1));
}
