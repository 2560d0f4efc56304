/** The paytables of a game as one table. */

import type { Paytable } from "../model/types.js";

export interface PaytableLine {
  /** The rows of the game's paytables that this line stands for, best hand first. */
  rows: string[];
  /** What each bet pays on them. A bet pays nothing on a hand that its table does not have: `lost`. */
  pays: string[];
  /** It ends with the lowest hand that there is. */
  isRest: boolean;
}

/** Hands, best first (H-2). A pair of aces is a pair, where a table has no row of its own for it. */
const HANDS = [
  ...["royal_flush", "straight_flush", "quads", "full_house", "flush", "straight", "trips", "two_pair"],
  ...["pair:A", "pair", "high_card"],
];

export function paytableRows(tables: readonly Paytable[]): PaytableLine[] {
  const paysOf = (table: Paytable, hand: string): string => {
    const find = (name: string): string | undefined => table.rows?.find((row) => row.category === name)?.pays;
    return find(hand) ?? (hand === "pair:A" ? find("pair") : undefined) ?? "lost";
  };
  const known = new Set(tables.flatMap((table) => (table.rows ?? []).map((row) => row.category)));
  const hands = HANDS.filter((hand) => known.has(hand) || !hand.includes(":"));
  const lines: PaytableLine[] = [];
  for (const hand of hands) {
    const pays = tables.map((table) => paysOf(table, hand));
    const last = lines.at(-1);
    if (last && last.pays.every((each, index) => each === pays[index])) last.rows.push(hand);
    else lines.push({ rows: [hand], pays, isRest: false });
  }
  const rest = lines.at(-1);
  if (rest) rest.isRest = true;
  // Hands on which no bet pays are none of a paytable.
  return lines.filter((line) => line.pays.some((each) => each !== "lost"));
}
