/** The player's accounts, one for each currency. */

import type { Jurisdiction, Me, SessionView } from "./types.js";

/** Decimal places of a currency's major unit. */
export function exponentOf(me: Me | undefined, terms: Jurisdiction, currency: string): number {
  const known = [...(me?.balances ?? []), ...(terms.currencies ?? [])];
  const found = known.find((each) => each.currency === currency);
  return found ? (found.exponent ?? 0) : 2;
}

/** The currency to play games for one player in: the chosen one where there is an account in it, else the first. */
export function currencyOf(me: Me | undefined, chosen: string): string {
  const has = me?.balances?.some((each) => each.currency === chosen);
  return (has ? chosen : me?.currency) ?? "EUR";
}

/** An open session for one player that goes on where the same game is opened again, with the same money. */
export function isSolo(session: SessionView | undefined, game: string, currency: string, mode: "real" | "demo"): boolean {
  const isDemo = session?.mode === "MODE_DEMO";
  return session?.ruleset?.id === game && !session.table && session.currency === currency && isDemo === (mode === "demo");
}
