/** What an opening and a final must agree on, from their own bytes: checks 11 to 17 (docs/verify.md 3). */

import { hex, unhex, utf8, type Bytes } from "./bytes.js";
import { deckOf, type Dealt, type Hand } from "./cards.js";
import { demand } from "./checks.js";
import { act, begin, outcomeOf, sum } from "./game.js";
import type { Hands, Row, Stake, Stand } from "./game.js";
import { equal, formatCanonical, has, objectAt, objectsAt, text, textsAt, whole } from "./json.js";
import type { Json, JsonObject } from "./json.js";
import type { Ruleset } from "./rules.js";
import { sha256, tagged } from "./sha2.js";
import { at } from "./statements.js";
import type { Trace } from "./trace.js";

export const UNRECOVERABLE = "DECK_UNRECOVERABLE";

/** The reason of a void; "" where there is none. */
export function voidReason(final: JsonObject): string {
  return has(final, "void") ? text(objectAt(final, "void"), "reason") : "";
}

/** Check 11: all of these fields are there, or none. */
export function demandFields(body: JsonObject, names: readonly string[], present: boolean): void {
  for (const name of names) {
    demand(has(body, name) === present, 11, `${name} is ${present ? "missing" : "there"} in a ${text(body, "status")} final`);
  }
}

/** Check 12: SHA-256("rgs/commitment/v1" 00 || SHA-256(deal core) || salt || length || transcript). */
export function checkCommitment(core: JsonObject, commitment: string, final: JsonObject, trace?: Trace): void {
  const coreBytes = utf8(formatCanonical(core));
  const transcript = unhex(text(final, "transcript"));
  const length = new Uint8Array([transcript.length >> 8, transcript.length & 255]);
  const made = hex(tagged("rgs/commitment/v1", sha256(coreBytes), unhex(text(final, "salt")), length, transcript));
  demand(made === commitment, 12, `salt and transcript give the commitment ${made}, the opening has ${commitment}`);
  trace?.("commitment", () => ({
    commitment,
    deal_core: formatCanonical(core),
    deal_core_sha256: hex(sha256(coreBytes)),
    salt: text(final, "salt"),
  }));
}

/** Check 13: the deck is what the shuffle makes of the transcript. */
export function checkTranscript(final: JsonObject, trace?: Trace): readonly string[] {
  const deck = deckOf(unhex(text(final, "transcript")));
  const shown = textsAt(final, "deck");
  demand(shown.join(" ") === deck.join(" "), 13, "the deck is not what the transcript gives");
  trace?.("transcript", () => ({ transcript: text(final, "transcript"), deck: deck.join(" ") }));
  return deck;
}

/** Check 14 of the fields that are given. */
export function checkCards(shown: readonly (readonly [string, readonly string[], readonly string[]])[]): void {
  for (const [name, found, due] of shown) {
    demand(found.join(" ") === due.join(" "), 14, `${name} are ${found.join(" ")}, the deck gives ${due.join(" ")}`);
  }
}

export function checkAllCards(cards: JsonObject, dealt: Dealt, hand: number, trace?: Trace): void {
  checkCards([
    ["hole_cards", textsAt(cards, "hole_cards"), dealt.hands[hand] ?? []],
    ["dealer_cards", textsAt(cards, "dealer_cards"), dealt.dealer],
    ["board", textsAt(cards, "board"), dealt.board],
    ["burns", textsAt(cards, "burns"), dealt.burns],
  ]);
  trace?.("cards", () => shownCards(dealt, dealt.hands[hand] ?? []));
}

export function shownCards(dealt: Dealt, hole: readonly string[]): { [name: string]: string } {
  return {
    ...(hole.length ? { hole_cards: hole.join(" ") } : {}),
    dealer_cards: dealt.dealer.join(" "),
    board: dealt.board.join(" "),
    burns: dealt.burns.join(" "),
  };
}

/** What binds the decisions of a seat. */
export interface Deciding {
  readonly ruleset: Ruleset;
  readonly stakes: readonly Stake[];
  /** The session's operator; null where the files do not show it. */
  readonly operator: string | null;
  /** What the running hash begins with: the commitment, or the hash of the seat_opening. */
  readonly begins: Bytes;
  /** The opening's time. */
  readonly from: number;
  /** What is left to stake; null: not known. */
  readonly left: bigint | null;
}

/** Check 15. Where the actions lead to. */
export function checkActions(deciding: Deciding, final: JsonObject, trace?: Trace): Stand {
  const { ruleset, stakes, operator } = deciding;
  const ante = stakes[0]?.amount ?? 0n;
  let stand = begin(ruleset);
  let [last, left, running] = [deciding.from, deciding.left, tagged("rgs/actions/v1", deciding.begins)];
  for (const [place, action] of objectsAt(final, "actions").entries()) {
    const [name, by, party] = [text(action, "action"), text(action, "by"), text(action, "party")];
    const which = `action ${place + 1}`;
    const isPlayers = by === "player";
    demand(isPlayers ? operator === null || party === operator : party === "rgs", 15, `${which} by ${by} is sent by ${party}`);
    demand(!(isPlayers && party === "rgs"), 15, `${which} by ${by} is sent by ${party}`);
    demand(text(action, "phase") === stand.phase, 15, `${which} is of ${text(action, "phase")}, the round is at ${stand.phase || "the showdown"}`);
    demand(at(action, "time") >= last, 15, `${which} is dated before the one before it`);
    demand(isPlayers || name === ruleset.defaults.get(stand.phase), 15, `${which} by ${by} is ${name}, not the default`);
    const next = act(ruleset, stand, name, ante);
    demand(next !== undefined, 15, `${which}: ${name} is not allowed ${stand.phase || "at the showdown"}`);
    const price = next[1];
    demand(whole(action, "amount_minor") === price, 15, `${which} is priced ${text(action, "amount_minor")}, ${name} costs ${price}`);
    demand(left === null || price <= left, 15, `${which} costs ${price}, ${left} are left`);
    if (left !== null) left -= price;
    running = tagged("rgs/actions/v1", running, utf8(formatCanonical(action)));
    [last, stand] = [at(action, "time"), next[0]];
  }
  demand(last <= at(final, "time"), 15, "the last action is dated after the final");
  demand(hex(running) === text(final, "actions_hash"), 15, `the running hash of the actions is ${hex(running)}`);
  demand(text(final, "status") !== "settled" || stand.phase === "", 15, `a settled round stands at ${stand.phase}`);
  trace?.("actions", () => ({
    actions: objectsAt(final, "actions").map((one) => text(one, "action")).join(" "),
    actions_hash: text(final, "actions_hash"),
  }));
  return stand;
}

export function handJson(hand: Hand): JsonObject {
  return { best5: hand.best5, category: hand.category };
}

/** Which hands an outcome shows, as a statement writes them. */
export function handsJson(hands: Hands, which: { readonly dealer: boolean; readonly player: boolean }): JsonObject {
  return {
    ...(which.dealer ? { dealer_hand: handJson(hands.dealer), dealer_qualifies: hands.dealerQualifies } : {}),
    ...(which.player ? { player_hand: handJson(hands.player) } : {}),
    ...(which.player && hands.flop ? { flop_hand: handJson(hands.flop) } : {}),
  };
}

/** Check 16. */
export function checkHands(shown: Json | undefined, due: JsonObject, name: string): void {
  demand(equal(shown, due), 16, `${name}: the cards give ${formatCanonical(due)}`);
}

/** Check 16 of an outcome. */
export function outcomeJson(hands: Hands, stand: Stand, which: { readonly dealer: boolean; readonly player: boolean }): JsonObject {
  return { ...handsJson(hands, which), outcome: outcomeOf(hands, stand) };
}

function rowJson(row: Row): JsonObject {
  const [stake, returned] = [String(row.stake), String(row.returned)];
  return { bet: row.bet, result: row.result, returned_minor: returned, stake_minor: stake };
}

/** Rows that a final shows against those that are due: check 17, or 19 of a void. */
export function checkRows(body: JsonObject, key: string, due: readonly Row[], check: 17 | 19): void {
  const shown = objectsAt(body, key);
  demand(shown.length === due.length, check, `${key} has ${shown.length} rows, there are ${due.length} bets`);
  for (const [place, row] of due.entries()) {
    const [found, expected] = [shown[place], rowJson(row)];
    demand(equal(found, expected), check, `${key}: ${formatCanonical(expected)} is due for ${row.bet}`);
  }
}

export function rowsShown(body: JsonObject, key: string): { [name: string]: string } {
  const rows = objectsAt(body, key).map(
    (row) => `${text(row, "bet")} ${text(row, "stake_minor")} ${text(row, "result")} ${text(row, "returned_minor")}`,
  );
  return { [key]: rows.join("; ") };
}

/** All that a seat has staked. */
export function stakedOf(stakes: readonly Stake[], stand: Stand): bigint {
  return sum(stakes) + (stand.play?.amount ?? 0n);
}

/** What the rows of a final return; of a void without rows the stakes. */
export function returnedOf(final: JsonObject, staked: bigint): bigint {
  if (!has(final, "settlement")) return staked;
  return objectsAt(final, "settlement").reduce((total, row) => total + whole(row, "returned_minor"), 0n);
}
