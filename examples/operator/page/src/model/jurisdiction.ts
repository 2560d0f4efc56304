/** What the regulator's rules allow. A field that is absent is false or 0: what is not allowed is forbidden. */

import type { Jurisdiction } from "./types.js";

/** One key may place the last bets again. */
export function mayRepeat(terms: Jurisdiction): boolean {
  return terms.repeat_allowed === true;
}

/** There is play money beside real money. */
export function mayPlayDemo(terms: Jurisdiction): boolean {
  return terms.demo_allowed === true;
}

/** The showing of a result may be cut short. */
export function maySkip(terms: Jurisdiction): boolean {
  return terms.skip_animations_allowed === true;
}

/** At so many tables at once the player may be (T-4), and the screen has room for. */
export function tablesAtOnce(terms: Jurisdiction, room: number): number {
  return Math.min(terms.tables_max ?? 0, room);
}

/** The operator may grant stakes. */
export function mayPlayFreeBets(terms: Jurisdiction): boolean {
  return terms["free_bets_allowed"] === true;
}

/** The languages that are allowed, of those that the page has. None stated: all of them. */
export function languagesOf(terms: Jurisdiction, known: readonly string[]): string[] {
  const { languages = [] } = terms;
  return languages.length ? known.filter((each) => languages.includes(each)) : [...known];
}
