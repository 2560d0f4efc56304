/** What replay keeps while it reads: of a session, of the seat that is open in it, and of a round at a table. */

import type { Bytes } from "../bytes.js";
import { cardsDealt, type Dealt } from "../cards.js";
import type { Stake } from "../game.js";
import type { JsonObject } from "../json.js";
import type { Jurisdiction, Ruleset } from "../rules.js";
import type { Statement } from "../statements.js";

/** Sums of a session; null where links are missing. */
export interface Sums {
  balance: bigint | null;
  bought: bigint | null;
  staked: bigint | null;
  returned: bigint | null;
  purchases: bigint | null;
  rounds: bigint | null;
}

export interface Session {
  readonly id: string;
  readonly sums: Sums;
  open: JsonObject | null;
  /** What the first deal names, where the files begin later than the session. */
  rulesetName: string;
  ruleset: Ruleset | undefined;
  jurisdiction: Jurisdiction | undefined;
  isSeamless: boolean | null;
  /** Whether it is played with play money; null where no link has shown it. */
  isDemo: boolean | null;
  /** The limits of the session_open on bets. */
  betLimits: ReadonlyMap<string, BetLimit>;
  /** The free bet whose return is still to come, and what the newest final of such a round owes to the campaign. */
  freeBet: PaidRound | null;
  /** null where the files do not show it. */
  reclaimed: bigint | null;
  /** The round of the newest link and of the one before it, where a free bet that the files do not hold may have paid. */
  unseenRound: string;
  unseenRoundBefore: string;
  table: string | null;
  link: bigint;
  hash: string;
  time: number;
  /** The kind of the newest link; of a transfer and a free_bet where it stands, of a final whether a free bet paid. */
  stage: string;
  participation: string;
  start: number;
  /** The game codes of the newest second in which a round started. */
  codes: Set<string>;
  opening: OpenSeat | null;
  /** The round of the open seat_opening, if it is there. */
  tableRound: TableRound | null;
  /** The kind before the newest link, "" where links are missing between them. */
  stageBefore: string;
  /** The regulator's id of the participation; null before the first block that may name it. */
  regulatorParticipation: string | null;
  /** The round of the newest transfer or final, and the sum of the debits within the round that is open: null where some are missing. */
  transferRound: string;
  debits: bigint | null;
  isClosed: boolean;
}

export interface BetLimit {
  readonly min: bigint;
  readonly max: bigint;
}

/** A round that a free bet pays for: what its debit says. */
export interface PaidRound {
  readonly grant: string;
  readonly round: string;
  readonly amount: bigint;
  /** From this time on it cannot be played; before all time where the debit names none. */
  readonly expires: number;
}

/** An opening that waits for its final. */
export interface OpenSeat {
  readonly statement: Statement;
  readonly round: string;
  readonly stakes: readonly Stake[];
  /** What of the stakes a free bet paid. */
  readonly granted: bigint;
  readonly ruleset: Ruleset | undefined;
  /** It failed none of the checks that its final stands on. */
  isGood: boolean;
}

export interface TableRound {
  readonly statement: Statement;
  readonly body: JsonObject;
  readonly id: string;
  readonly table: Table;
  readonly ruleset: Ruleset | undefined;
  readonly law: Jurisdiction | undefined;
  /** Player hands that are dealt. */
  readonly hands: bigint;
  readonly leaves: bigint;
  seats: JsonObject | null;
  deal: Statement | null;
  final: Statement | null;
  /** The cards, where a final shows a deck and has failed none of its checks 11 to 16. */
  cards: Dealt | null;
  isFinalSound: boolean;
  /** The final has failed none of its checks at all. */
  isEndSound: boolean;
  readonly leafOf: Map<bigint, Bytes>;
  readonly boxes: Set<string>;
  /** The times of the openings of its seats. */
  readonly openings: number[];
  /** Seats whose final is still to come. */
  unanswered: number;
  /** Some of its seats end outside of the files. */
  isCut: boolean;
}

export interface Table {
  readonly name: string;
  no: bigint;
  final: string;
  finalTime: number;
  codes: Set<string>;
  codeTime: number;
  newest: TableRound | null;
}

/** Whether cards and phases of a round can be compared at all. */
export function canDeal(round: TableRound): boolean {
  const { ruleset, hands } = round;
  if (!ruleset || !ruleset.isTableOnly || hands > 52n) return false;
  if (ruleset.isShared ? hands !== 1n : ruleset.maxSeats !== 0n && hands > ruleset.maxSeats) return false;
  return cardsDealt(ruleset, Number(hands)) <= 52;
}
