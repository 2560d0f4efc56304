/**
 * Placing bets (RULEBOOK F-1, F-2, F-5) as pure functions: each takes a slip and returns a new one, with a refusal or a
 * notice that has the number and, where there is one, the amount that would be accepted.
 */

/** What the table says about one bet that the player places. */
export interface BetRule {
  bet: string;
  min: bigint;
  max: bigint;
  step: bigint;
  required: boolean;
  /** How often the stake is paid: the ante of Ultimate Texas Hold'em brings a blind of the same amount. */
  times: bigint;
}

export type Amounts = Readonly<Record<string, bigint>>;

/** The bets on the felt before the deal, and the felts before each placement. */
export interface Slip {
  readonly amounts: Amounts;
  readonly past: readonly Amounts[];
}

export type RefusalReason =
  | "ANTE_FIRST"
  | "AT_LIMIT"
  | "FILLED"
  | "BALANCE"
  | "BALANCE_DOUBLE"
  | "BALANCE_REPEAT"
  | "BELOW_MINIMUM"
  | "STEP"
  | "NOTHING"
  | "NOT_EMPTY";

export interface Refusal {
  reason: RefusalReason;
  bet?: string;
  /** The number that the message names: a limit, a cost, a step. */
  limit?: bigint;
  /** What the bet may become instead. */
  remedy?: bigint;
}

export interface Placed {
  slip: Slip;
  /** Why nothing, or less than the chip, was placed. */
  refusal?: Refusal;
}

export const EMPTY: Slip = { amounts: {}, past: [] };

export function amountOf(amounts: Amounts, bet: string): bigint {
  return amounts[bet] ?? 0n;
}

/** What the bets cost, the blind of the system included. */
export function totalOf(amounts: Amounts, rules: readonly BetRule[]): bigint {
  return rules.reduce((sum, rule) => sum + amountOf(amounts, rule.bet) * rule.times, 0n);
}

export function isEmpty(slip: Slip): boolean {
  return Object.values(slip.amounts).every((amount) => amount === 0n);
}

/** A click on a spot: the chip, or what is left up to the limit. */
export function place(slip: Slip, rules: readonly BetRule[], bet: string, chip: bigint, balance: bigint): Placed {
  const rule = ruleOf(rules, bet);
  const required = rules.find((each) => each.required);
  if (!rule.required && required && amountOf(slip.amounts, required.bet) === 0n) {
    return { slip, refusal: { reason: "ANTE_FIRST", bet: required.bet } };
  }
  const now = amountOf(slip.amounts, bet);
  const top = rule.max - (rule.max % rule.step);
  if (now >= top) return { slip, refusal: { reason: "AT_LIMIT", bet, limit: top } };
  const wanted = now + chip > top ? top : floorTo(now + chip, rule.step);
  if (wanted === now) return { slip, refusal: { reason: "STEP", bet, limit: rule.step } };
  const left = balance - totalOf(slip.amounts, rules);
  if ((wanted - now) * rule.times > left) {
    const most = floorTo(now + (left > 0n ? left / rule.times : 0n), rule.step);
    const remedy = most > now && most >= rule.min ? { remedy: most } : {};
    return { slip, refusal: { reason: "BALANCE", bet, limit: most, ...remedy } };
  }
  const placed = put(slip, { ...slip.amounts, [bet]: wanted });
  return wanted < now + chip && wanted === top
    ? { slip: placed, refusal: { reason: "FILLED", bet, limit: top } }
    : { slip: placed };
}

/** A bet set to an amount: the remedy of a refusal. */
export function setBet(slip: Slip, rules: readonly BetRule[], bet: string, amount: bigint, balance: bigint): Placed {
  return place({ ...slip, amounts: without(slip.amounts, bet) }, rules, bet, amount, balance).refusal === undefined
    ? { slip: put(slip, { ...slip.amounts, [bet]: amount }) }
    : place(slip, rules, bet, amount, balance);
}

/** 2x: all bets, each up to its limit, and only where the balance covers all of it. */
export function double(slip: Slip, rules: readonly BetRule[], balance: bigint): Placed {
  if (isEmpty(slip)) return { slip, refusal: { reason: "NOTHING" } };
  const doubled: Record<string, bigint> = {};
  let capped: BetRule | undefined;
  for (const rule of rules) {
    const now = amountOf(slip.amounts, rule.bet);
    if (now === 0n) continue;
    const top = rule.max - (rule.max % rule.step);
    doubled[rule.bet] = now * 2n > top ? top : now * 2n;
    if (now * 2n > top) capped ??= rule;
  }
  if (same(doubled, slip.amounts)) {
    return { slip, refusal: { reason: "AT_LIMIT", bet: capped?.bet ?? "", limit: capped?.max ?? 0n } };
  }
  const cost = totalOf(doubled, rules);
  if (cost > balance) return { slip, refusal: { reason: "BALANCE_DOUBLE", limit: cost } };
  const placed = put(slip, doubled);
  return capped ? { slip: placed, refusal: { reason: "FILLED", bet: capped.bet, limit: capped.max } } : { slip: placed };
}

/** The bets of the round before, before the first chip only. */
export function repeat(slip: Slip, rules: readonly BetRule[], before: Amounts, balance: bigint): Placed {
  if (!isEmpty(slip)) return { slip, refusal: { reason: "NOT_EMPTY" } };
  const again: Record<string, bigint> = {};
  for (const rule of rules) {
    const amount = amountOf(before, rule.bet);
    if (amount > 0n) again[rule.bet] = amount > rule.max ? floorTo(rule.max, rule.step) : amount;
  }
  if (Object.keys(again).length === 0) return { slip, refusal: { reason: "NOTHING" } };
  const cost = totalOf(again, rules);
  if (cost > balance) return { slip, refusal: { reason: "BALANCE_REPEAT", limit: cost } };
  return { slip: put(slip, again) };
}

/** Takes the last placement back. */
export function undo(slip: Slip): Placed {
  const last = slip.past.at(-1);
  if (!last) return { slip, refusal: { reason: "NOTHING" } };
  return { slip: { amounts: last, past: slip.past.slice(0, -1) } };
}

/** Takes everything back; one undo brings it back. */
export function clear(slip: Slip): Placed {
  return isEmpty(slip) ? { slip, refusal: { reason: "NOTHING" } } : { slip: put(slip, {}) };
}

/** A right click: a chip of the chosen value less, or the whole bet where the chip is larger. */
export function remove(slip: Slip, rules: readonly BetRule[], bet: string, chip: bigint): Placed {
  const rule = ruleOf(rules, bet);
  const now = amountOf(slip.amounts, bet);
  if (now === 0n) return { slip, refusal: { reason: "NOTHING" } };
  const left = now > chip ? now - chip : 0n;
  // A side bet stands beside an ante only.
  const amounts = left === 0n && rule.required ? {} : { ...without(slip.amounts, bet), ...(left ? { [bet]: left } : {}) };
  return { slip: put(slip, amounts) };
}

/** Why these bets may not be dealt, or undefined where they may. */
export function check(slip: Slip, rules: readonly BetRule[], balance: bigint): Refusal | undefined {
  for (const rule of rules) {
    const amount = amountOf(slip.amounts, rule.bet);
    if (amount === 0n && !rule.required) continue;
    if (amount < rule.min) return { reason: "BELOW_MINIMUM", bet: rule.bet, limit: rule.min };
    if (amount > rule.max) return { reason: "AT_LIMIT", bet: rule.bet, limit: rule.max };
    if (amount % rule.step !== 0n) return { reason: "STEP", bet: rule.bet, limit: rule.step };
  }
  const cost = totalOf(slip.amounts, rules);
  return cost > balance ? { reason: "BALANCE", limit: balance } : undefined;
}

/** The bets as the contract has them. */
export function betsOf(amounts: Amounts): { bet: string; amount_minor: string }[] {
  return Object.entries(amounts)
    .filter(([, amount]) => amount > 0n)
    .map(([bet, amount]) => ({ bet, amount_minor: amount.toString() }));
}

/** The chips of a rack: 1 and 5 of each power of ten, from the least bet up, at most `most`. */
export function rackOf(rules: readonly BetRule[], most = 8): bigint[] {
  const ante = rules.find((rule) => rule.required) ?? rules[0];
  if (!ante) return [];
  const chips: bigint[] = [];
  for (let power = 1n; power <= ante.max && chips.length < most; power *= 10n) {
    for (const chip of [power, power * 5n]) {
      const fits = chip >= ante.min && chip <= ante.max && chip % ante.step === 0n;
      if (fits && chips.length < most) chips.push(chip);
    }
  }
  return chips;
}

/** Whether the balance covers a chip more (F-1: the others are not live). */
export function isLive(chip: bigint, slip: Slip, rules: readonly BetRule[], balance: bigint): boolean {
  return chip <= balance - totalOf(slip.amounts, rules);
}

function put(slip: Slip, amounts: Amounts): Slip {
  return { amounts, past: [...slip.past, slip.amounts] };
}

function without(amounts: Amounts, bet: string): Amounts {
  return Object.fromEntries(Object.entries(amounts).filter(([name]) => name !== bet));
}

function same(one: Amounts, other: Amounts): boolean {
  return [...Object.keys(one), ...Object.keys(other)].every((bet) => amountOf(one, bet) === amountOf(other, bet));
}

function floorTo(amount: bigint, step: bigint): bigint {
  return amount - (amount % step);
}

function ruleOf(rules: readonly BetRule[], bet: string): BetRule {
  const rule = rules.find((each) => each.bet === bet);
  if (!rule) throw new Error(`no bet ${bet} at this game; its bets are ${rules.map((each) => each.bet).join(", ")}`);
  return rule;
}
