/** The two games (docs/verify.md 5): bets, phases, prices, outcomes and what each bet returns. */

import { bestHand, compareHands, reaches, type Dealt, type Hand } from "./cards.js";
import { demand } from "./checks.js";
import { text, whole, type JsonObject } from "./json.js";
import type { Ruleset } from "./rules.js";

export type Outcome = "player" | "dealer" | "tie" | "fold";
type Payment = "even" | "lose" | "push" | "table";

interface Game {
  /** The bets before the cards that every player places; the side bet follows if it was placed. */
  readonly opening: readonly string[];
  readonly side: string;
  readonly sideLooksAtFlop: boolean;
  /** The bet of the decision. */
  readonly play: string;
  /** Of each phase its actions: the price in antes, and the next phase ("" is the showdown). */
  readonly phases: { readonly [phase: string]: { readonly [action: string]: readonly [bigint, string] } };
  readonly first: string;
  /** By whether the dealer qualifies and the outcome: what the bets of the opening and then that of the decision get. */
  readonly payments: { readonly [result: string]: readonly Payment[] };
}

const UTH: Game = {
  opening: ["ante", "blind"],
  side: "trips",
  sideLooksAtFlop: false,
  play: "play",
  first: "preflop",
  phases: {
    preflop: { check: [0n, "flop"], play_4x: [4n, ""], play_3x: [3n, ""] },
    flop: { check: [0n, "river"], play_2x: [2n, ""] },
    river: { play_1x: [1n, ""], fold: [0n, ""] },
  },
  payments: {
    "false player": ["push", "table", "even"],
    "false dealer": ["push", "lose", "lose"],
    "false tie": ["push", "push", "push"],
    "true player": ["even", "table", "even"],
    "true dealer": ["lose", "lose", "lose"],
    "true tie": ["push", "push", "push"],
    fold: ["lose", "lose"],
  },
};

const CHE: Game = {
  opening: ["ante"],
  side: "aa",
  sideLooksAtFlop: true,
  play: "call",
  first: "flop",
  phases: { flop: { call: [2n, ""], fold: [0n, ""] } },
  payments: {
    "false player": ["table", "push"],
    "false dealer": ["table", "push"],
    "false tie": ["table", "push"],
    "true player": ["table", "even"],
    "true dealer": ["lose", "lose"],
    "true tie": ["push", "push"],
    fold: ["lose"],
  },
};

export function gameOf(ruleset: Ruleset): Game {
  return ruleset.game === "casino_holdem" ? CHE : UTH;
}

export interface Stake {
  readonly bet: string;
  readonly amount: bigint;
}

export function stakesOf(bets: readonly JsonObject[]): readonly Stake[] {
  return bets.map((bet) => ({ bet: text(bet, "bet"), amount: whole(bet, "amount_minor") }));
}

export function sum(stakes: readonly Stake[]): bigint {
  return stakes.reduce((total, stake) => total + stake.amount, 0n);
}

/** Check 10: the opening bets of the ruleset in order, each within its limits and on the step. */
export function checkStakes(ruleset: Ruleset, stakes: readonly Stake[]): void {
  const game = gameOf(ruleset);
  const names = stakes.map((stake) => stake.bet).join(" ");
  const least = game.opening.join(" ");
  demand(names === least || names === `${least} ${game.side}`, 10, `the bets are ${names}, not ${least} [${game.side}]`);
  for (const { bet, amount } of stakes) {
    const limits = ruleset.limits.get(bet);
    demand(!limits || (amount >= limits.min && amount <= limits.max), 10, `${bet} ${amount} is outside of its limits`);
    demand(amount % ruleset.step === 0n, 10, `${bet} ${amount} is not a multiple of ${ruleset.step}`);
    demand(bet !== "blind" || amount === stakes[0]!.amount, 10, `blind ${amount} is not equal to the ante`);
  }
}

/** Where a hand stands between its actions. */
export interface Stand {
  /** "" at the showdown. */
  readonly phase: string;
  /** The bet of the decision, if it was placed. */
  readonly play: Stake | null;
  readonly hasFolded: boolean;
}

export function begin(ruleset: Ruleset): Stand {
  return { phase: gameOf(ruleset).first, play: null, hasFolded: false };
}

/** What an action leads to and costs; undefined if the phase does not have it. */
export function act(ruleset: Ruleset, stand: Stand, action: string, ante: bigint): [Stand, bigint] | undefined {
  const game = gameOf(ruleset);
  const found = game.phases[stand.phase]?.[action];
  if (!found) return undefined;
  const price = found[0] * ante;
  const play = price > 0n ? { bet: game.play, amount: price } : stand.play;
  return [{ phase: found[1], play, hasFolded: action === "fold" }, price];
}

/** Where the default decisions lead. They cost nothing. */
export function byDefault(ruleset: Ruleset, from: Stand): Stand {
  let stand = from;
  while (stand.phase) {
    const next = act(ruleset, stand, ruleset.defaults.get(stand.phase) ?? "", 0n);
    if (!next) throw new TypeError(`${ruleset.id} has no default decision for ${stand.phase}`);
    stand = next[0];
  }
  return stand;
}

export interface Hands {
  readonly player: Hand;
  readonly dealer: Hand;
  readonly dealerQualifies: boolean;
  /** Of own two and the flop, where the side bet looks at it. */
  readonly flop: Hand | null;
}

export function handsOf(ruleset: Ruleset, cards: Dealt, hand: number): Hands {
  const own = cards.hands[hand]!;
  const dealer = bestHand([...cards.dealer, ...cards.board]);
  return {
    player: bestHand([...own, ...cards.board]),
    dealer,
    dealerQualifies: reaches(dealer, ruleset.qualify),
    flop: gameOf(ruleset).sideLooksAtFlop ? bestHand([...own, ...cards.board.slice(0, 3)]) : null,
  };
}

export function outcomeOf(hands: Hands, stand: Stand): Outcome {
  if (stand.hasFolded) return "fold";
  const better = compareHands(hands.player, hands.dealer);
  return better > 0 ? "player" : better < 0 ? "dealer" : "tie";
}

export interface Row {
  readonly bet: string;
  readonly stake: bigint;
  readonly result: "win" | "lose" | "push";
  readonly returned: bigint;
}

/** What a paytable gives for a hand: `x:y`, `push` or `lost`. */
function entry(ruleset: Ruleset, table: string, hand: Hand): string {
  const rows = ruleset.paytables.get(table);
  return rows?.get(`${hand.category}:${hand.best5[0]!.charAt(0)}`) ?? rows?.get(hand.category) ?? "";
}

function paid(stake: Stake, what: string): Row {
  const row = { bet: stake.bet, stake: stake.amount };
  if (what === "push") return { ...row, result: "push", returned: stake.amount };
  if (what === "lost" || what === "lose") return { ...row, result: "lose", returned: 0n };
  const odds = /^([0-9]+):([1-9][0-9]*)$/.exec(what);
  if (!odds) throw new TypeError(`the paytable of ${stake.bet} has the entry ${what || "(none)"}`);
  const gain = stake.amount * BigInt(odds[1]!);
  const by = BigInt(odds[2]!);
  demand(gain % by === 0n, 17, `${what} on ${stake.bet} ${stake.amount} is no whole number of minor units`);
  return { ...row, result: "win", returned: stake.amount + gain / by };
}

/** Check 17: one row a bet, in the order of the opening bets, then the bet of the decision. */
export function settle(ruleset: Ruleset, stakes: readonly Stake[], stand: Stand, hands: Hands): readonly Row[] {
  const game = gameOf(ruleset);
  const outcome = outcomeOf(hands, stand);
  const payments = game.payments[outcome === "fold" ? "fold" : `${hands.dealerQualifies} ${outcome}`]!;
  const main = stakes.filter((stake) => stake.bet !== game.side);
  const rows = [...main, ...(stand.play ? [stand.play] : [])].map((stake, at) => {
    const payment = payments[at]!;
    return paid(stake, payment === "table" ? entry(ruleset, stake.bet, hands.player) : payment === "even" ? "1:1" : payment);
  });
  const side = stakes.find((stake) => stake.bet === game.side);
  if (side) {
    const isLost = outcome === "fold" && !ruleset.paysSideBetAfterFold;
    const hand = game.sideLooksAtFlop && hands.flop ? hands.flop : hands.player;
    rows.splice(main.length, 0, paid(side, isLost ? "lost" : entry(ruleset, game.side, hand)));
  }
  return rows;
}

/** What a void returns: every stake. */
export function pushed(stakes: readonly Stake[], play: Stake | null): readonly Row[] {
  return [...stakes, ...(play ? [play] : [])].map((stake) => paid(stake, "push"));
}

/** The phases in which a player decides, in their order. */
export function phasesOf(ruleset: Ruleset): readonly string[] {
  return Object.keys(gameOf(ruleset).phases);
}
