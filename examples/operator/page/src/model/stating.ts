/**
 * Stating bets at a table: the whole bet is sent each time, one request under way at once; what changed meanwhile goes
 * out with the next. A bet below the minimum is not sent: the seat keeps the bet that it has.
 */

import { betsOf, check, isEmpty, type Amounts, type BetRule, type Slip } from "./betting.js";
import { int, type Bet } from "./types.js";

export function amountsOf(bets: readonly Bet[] | undefined, rules: readonly BetRule[]): Amounts {
  const placed = (bets ?? []).filter((bet) => rules.some((rule) => rule.bet === bet.bet));
  return Object.fromEntries(placed.map((bet) => [bet.bet, int(bet.amount_minor)]));
}

/** What the seat should be told, or undefined where it has these bets or where they may not stand yet. */
export function toState(
  slip: Slip,
  seatBets: readonly Bet[] | undefined,
  rules: readonly BetRule[],
  balance: bigint,
): { bet: string; amount_minor: string }[] | undefined {
  const seat = amountsOf(seatBets, rules);
  if (rules.every((rule) => (slip.amounts[rule.bet] ?? 0n) === (seat[rule.bet] ?? 0n))) return undefined;
  if (!isEmpty(slip) && check(slip, rules, balance) !== undefined) return undefined;
  return betsOf(slip.amounts);
}
