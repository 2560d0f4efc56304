/** Cards as the contract writes them: `As`, `Td`. */

export const RANKS = "23456789TJQKA";
export const SUITS = "cdhs";

export interface Card {
  rank: string;
  suit: string;
}

export function cardOf(code: string): Card {
  const [rank = "", suit = ""] = [...code];
  if (code.length !== 2 || !RANKS.includes(rank) || !SUITS.includes(suit)) throw new Error(`no card: ${code}`);
  return { rank, suit };
}

/** What stands on the card: `10` for the ten. */
export function faceOf(rank: string): string {
  return rank === "T" ? "10" : rank;
}

/**
 * The combination of the hole cards before the flop, which the contract does not name: with two cards there is a pair or
 * a high card.
 */
export function ofTwo(cards: readonly string[]): { category: "pair" | "high_card"; rank: string } | undefined {
  if (cards.length !== 2) return undefined;
  const [one, other] = cards.map((code) => cardOf(code).rank) as [string, string];
  const higher = RANKS.indexOf(one) >= RANKS.indexOf(other) ? one : other;
  return { category: one === other ? "pair" : "high_card", rank: higher };
}
