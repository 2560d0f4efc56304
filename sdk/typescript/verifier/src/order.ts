/**
 * The order in which the statements of one round are read, whatever order they came in. It is taken from payloads that are
 * not verified yet: one that is not the true order fails a check.
 */

import { ascii } from "./bytes.js";
import { JsonError, parseCanonical, type Json, type JsonObject } from "./json.js";
import type { Envelope } from "./statements.js";

/** Of statements of two instances the one of the lower rank is read first, of one rank the one of the lower link. */
const RANK: { readonly [kind: string]: number } = {
  ...{ instance_start: 0, session_open: 1, table_round: 2, table_seats: 3, table_deal: 4 },
  ...{ transfer: 5, free_bet: 5, round_opening: 5, seat_opening: 5, event: 6, table_final: 7, round_final: 8, seat_final: 8 },
};
const OF_NO_ROUND = 0;
/** What is credited stands behind the final. */
const CREDITED = 9;

/** What a statement says of its own place. */
export interface Claims {
  readonly rank: number;
  readonly instance: string;
  readonly number: number;
  readonly link: number;
  /** "" where it names none. */
  readonly round: string;
  readonly session: string;
}

/** Whether statements of this kind say something of a round. */
export function isOfRounds(kind: string): boolean {
  return kind in RANK;
}

export function claimsOf(kind: string, envelope: Envelope): Claims {
  const body = bodyOf(envelope);
  const deal = body["deal"];
  const round = said(body, "round_id") || (isObject(deal) ? said(deal, "round_id") : "");
  const isCredit = (kind === "transfer" || kind === "free_bet") && said(body, "direction") === "credit";
  return {
    rank: isCredit ? CREDITED : kind === "event" && round === "" ? OF_NO_ROUND : RANK[kind] ?? CREDITED,
    instance: said(body, "instance"),
    number: Number(said(body, "statement_no")) || 0,
    link: Number(said(body, "link_no")) || 0,
    round,
    session: said(body, "session_id"),
  };
}

function bodyOf({ payload }: Envelope): JsonObject {
  try {
    return parseCanonical(ascii(payload) ?? "");
  } catch (error) {
    if (error instanceof JsonError) return {};
    throw error;
  }
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && !Array.isArray(value);
}

function said(body: JsonObject, name: string): string {
  const value = body[name];
  return typeof value === "string" ? value : "";
}

interface Placed {
  readonly claims: Claims;
}

/** The statements of one round and session ("": of any), each instance's in the order of their numbers; then the others. */
export function ordered<T extends Placed>(read: readonly T[], round: string, session: string): readonly T[] {
  const isIts = ({ claims }: T): boolean => isOne(claims.round, round) && isOne(claims.session, session);
  const queues = new Map<string, T[]>();
  for (const one of read.filter(isIts)) {
    const { instance } = one.claims;
    queues.set(instance, [...(queues.get(instance) ?? []), one]);
  }
  for (const queue of queues.values()) queue.sort((left, right) => left.claims.number - right.claims.number);
  const found: T[] = [];
  for (let left = [...queues.values()]; left.length > 0; left = left.filter((queue) => queue.length > 0)) {
    const next = left.reduce((first, queue) => (isBefore(queue[0]!, first[0]!) ? queue : first));
    found.push(next.shift()!);
  }
  return [...found, ...read.filter((one) => !isIts(one))];
}

function isOne(claimed: string, chosen: string): boolean {
  return claimed === "" || chosen === "" || claimed === chosen;
}

function isBefore({ claims: one }: Placed, { claims: other }: Placed): boolean {
  return one.rank === other.rank ? one.link < other.link : one.rank < other.rank;
}
