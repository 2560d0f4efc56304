/** What the page needs of a game's catalog entry for placing and deciding. */

import type { BetRule } from "./betting.js";
import { bare, int, type BetLimits, type Game, type RoundView, type SessionView, type TableEntry } from "./types.js";

export const UTH = "ultimate_texas_holdem";
export const HOLDEM = "casino_holdem";

/** The rules of the bets a player places; a table's limits take the place of the game's. */
export function betRules(game: Game, table?: TableEntry): BetRule[] {
  return (game.limits ?? []).map((limits) => {
    const own = table?.limits?.find((each) => each.bet === limits.bet);
    return ruleOf(game, limits, own ?? limits);
  });
}

function ruleOf(game: Game, limits: BetLimits, amounts: { min_minor?: string; max_minor?: string }): BetRule {
  return {
    bet: limits.bet,
    min: int(amounts.min_minor),
    max: int(amounts.max_minor),
    step: int(limits.step_minor) || 1n,
    required: limits.required ?? false,
    times: game.family === UTH && limits.bet === "ante" ? 2n : 1n,
  };
}

/** The spots of the felt, from the player outward (T-5): bets that are placed, by the system, and by decision. */
export function spotsOf(game: Game): string[] {
  return game.family === UTH ? ["play", "ante", "blind", "trips"] : ["call", "ante", "aa"];
}

interface Canonical {
  default_decisions?: Record<string, string>;
  visibility?: string;
  timers?: Record<string, number>;
}

/** The ruleset itself: what silence does in each phase stands there. */
export function canonicalOf(game: Game): Canonical {
  if (!game.canonical) return {};
  const bytes = Uint8Array.from(atob(game.canonical), (char) => char.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes)) as Canonical;
}

/** The decision that silence takes in the phase of the round: `CHECK`, `FOLD`. */
export function defaultOf(game: Game, round: RoundView): string {
  const phase = bare(round.phase, "PHASE_").toLowerCase();
  return (canonicalOf(game).default_decisions?.[phase] ?? "").toUpperCase();
}

/** What can be staked now. */
export function balanceOf(session: SessionView): bigint {
  return session.funding === "FUNDING_SEAMLESS" ? int(session.wallet_balance_minor) : int(session.balance_minor);
}

/** The hand is finished. */
export function isOver(round: RoundView): boolean {
  return round.status === "ROUND_STATUS_SETTLED" || round.status === "ROUND_STATUS_VOID";
}

/** An earlier view of the same session. A server from before versions says none: then what comes last counts. */
export function isEarlier(session: SessionView, known: SessionView): boolean {
  const version = int(session.session_version);
  return version > 0n && version < int(known.session_version);
}

/** An earlier view of the same round: an answer may come behind what was pushed after it. */
export function isOlder(round: RoundView | undefined, known: RoundView | undefined): boolean {
  if (!round || !known || round.round_id !== known.round_id) return false;
  return int(round.round_version) < int(known.round_version);
}

/** A round whose return is above its stake: only then is there a winner's notice. */
export function isWin(round: RoundView): boolean {
  return round.status === "ROUND_STATUS_SETTLED" && netOf(round) > 0n;
}

/** What the player has staked: a free bet's ante and blind are the campaign's. */
export function ownStake(round: RoundView): bigint {
  return int(round.staked_minor) - int(round.granted_minor);
}

/** What the round has brought or cost the player. What came back of a free bet's stake goes back to its campaign. */
export function netOf(round: RoundView): bigint {
  return int(round.returned_minor) - int(round.reclaimed_minor) - ownStake(round);
}

/** The sentence of a result: a key of the page's words. */
export function resultKey(round: RoundView): string {
  if (round.status === "ROUND_STATUS_VOID") return "result.void";
  const net = netOf(round);
  if (net > 0n) return "result.won";
  if (net === 0n && round.grant_id) return "result.free_bet";
  if (round.outcome === "OUTCOME_FOLD") return "result.folded";
  return net === 0n ? "result.even" : "result.lost";
}
