/** Decks and poker hands: transcript to deck (docs/formats.md 7), the deal, and the best five of seven (6). */

import { demand } from "./checks.js";
import type { Ruleset } from "./rules.js";

export const RANKS = "23456789TJQKA";
export const SUITS = "cdhs";
const DECK: readonly string[] = [...SUITS].flatMap((suit) => [...RANKS].map((rank) => rank + suit));

export const CATEGORIES = [
  "high_card",
  "pair",
  "two_pair",
  "trips",
  "straight",
  "flush",
  "full_house",
  "quads",
  "straight_flush",
  "royal_flush",
] as const;
export type Category = (typeof CATEGORIES)[number];

/** The deck that a shuffle made of these bytes, and nothing else: fisher-yates-52/v1. Check 13. */
export function deckOf(transcript: Uint8Array): readonly string[] {
  const deck = [...DECK];
  let at = 0;
  for (let place = 51; place > 0; place -= 1) {
    const choices = place + 1;
    const limit = 256 - (256 % choices);
    let byte: number | undefined;
    do {
      byte = transcript[at];
      at += 1;
      demand(byte !== undefined, 13, `the transcript ends at byte ${at}, before the shuffle does`);
    } while (byte >= limit);
    const other = byte % choices;
    [deck[place], deck[other]] = [deck[other]!, deck[place]!];
  }
  demand(at === transcript.length, 13, `the shuffle takes ${at} bytes, the transcript has ${transcript.length}`);
  return deck;
}

export interface Dealt {
  /** Two cards of each player hand. */
  readonly hands: readonly (readonly string[])[];
  readonly dealer: readonly string[];
  readonly board: readonly string[];
  readonly burns: readonly string[];
}

/** How many cards a deal of so many player hands takes. */
export function cardsDealt(ruleset: Ruleset, hands: number): number {
  return ruleset.procedure.reduce((sum, [part, count]) => sum + (part === "player" ? count * hands : count), 0);
}

/** The cards dealt from the top of a deck, in the order of the ruleset. */
export function dealt(ruleset: Ruleset, deck: readonly string[], hands: number): Dealt {
  const found = { hands: [] as string[][], dealer: [] as string[], board: [] as string[], burns: [] as string[] };
  let top = 0;
  const take = (count: number): string[] => deck.slice(top, (top += count));
  for (const [part, count] of ruleset.procedure) {
    if (part === "player") for (let hand = 0; hand < hands; hand += 1) found.hands.push(take(count));
    else if (part === "dealer") found.dealer.push(...take(count));
    else if (part === "burn") found.burns.push(...take(count));
    else found.board.push(...take(count));
  }
  return found;
}

export interface Hand {
  readonly category: Category;
  readonly best5: readonly string[];
}

function rank(card: string): number {
  return RANKS.indexOf(card.charAt(0));
}

/** Cards by falling rank; of one rank the first suit of c, d, h, s first. */
function sorted(cards: readonly string[]): string[] {
  const key = (card: string): number => -4 * rank(card) + SUITS.indexOf(card.charAt(1));
  return [...cards].sort((left, right) => key(left) - key(right));
}

/** The highest straight among sorted cards, one card a rank; the ace is high, or low in 5 4 3 2 A. */
function straight(cards: readonly string[]): string[] | null {
  const firsts = cards.filter((card, at) => at === 0 || rank(card) !== rank(cards[at - 1]!));
  for (let from = 0; from + 5 <= firsts.length; from += 1) {
    if (rank(firsts[from]!) - rank(firsts[from + 4]!) === 4) return firsts.slice(from, from + 5);
  }
  const wheel = firsts.filter((card) => rank(card) <= 3);
  return wheel.length === 4 && firsts[0]!.startsWith("A") ? [...wheel, firsts[0]!] : null;
}

/** The best five of five to seven cards, in the one order. */
export function bestHand(cards: readonly string[]): Hand {
  const all = sorted(cards);
  const suited = [...SUITS].map((suit) => all.filter((card) => card.endsWith(suit))).find((one) => one.length >= 5);
  const inSuit = suited && straight(suited);
  if (inSuit) return { category: rank(inSuit[0]!) === 12 ? "royal_flush" : "straight_flush", best5: inSuit };
  const byRank = [...RANKS].reverse().map((one) => all.filter((card) => card.startsWith(one)));
  const groups = byRank.filter((group) => group.length > 0);
  const of = (least: number): string[][] => groups.filter((group) => group.length >= least);
  const filled = (...taken: readonly (readonly string[])[]): string[] => {
    const first = taken.flat();
    return [...first, ...all.filter((card) => !first.includes(card))].slice(0, 5);
  };
  const [quads] = of(4);
  if (quads) return { category: "quads", best5: filled(quads) };
  const [trips] = of(3);
  const pairs = of(2).filter((group) => group !== trips);
  if (trips && pairs[0]) return { category: "full_house", best5: filled(trips, pairs[0].slice(0, 2)) };
  if (suited) return { category: "flush", best5: suited.slice(0, 5) };
  const run = straight(all);
  if (run) return { category: "straight", best5: run };
  if (trips) return { category: "trips", best5: filled(trips) };
  if (pairs[0] && pairs[1]) return { category: "two_pair", best5: filled(pairs[0], pairs[1]) };
  if (pairs[0]) return { category: "pair", best5: filled(pairs[0]) };
  return { category: "high_card", best5: all.slice(0, 5) };
}

/** Above 0 if the left hand is better, 0 if they are equal. Suits never decide. */
export function compareHands(left: Hand, right: Hand): number {
  const byCategory = CATEGORIES.indexOf(left.category) - CATEGORIES.indexOf(right.category);
  if (byCategory) return byCategory;
  for (let at = 0; at < 5; at += 1) {
    const byRank = rank(left.best5[at]!) - rank(right.best5[at]!);
    if (byRank) return byRank;
  }
  return 0;
}

/** Whether a hand reaches `pair`, or `pair:4`: a pair of that rank at least. */
export function reaches(hand: Hand, floor: string): boolean {
  const [category = "", least = ""] = floor.split(":");
  const above = CATEGORIES.indexOf(hand.category) - CATEGORIES.indexOf(category as Category);
  return above > 0 || (above === 0 && (least === "" || rank(hand.best5[0]!) >= RANKS.indexOf(least)));
}
