/** Statements: the kinds that there are, their DSSE envelopes in the one form, and the hash by which they are named. */

import { ascii, concat, hex, unbase64, utf8, type Bytes } from "./bytes.js";
import { demand } from "./checks.js";
import { JsonError, PAYLOAD_BYTES_MAX, parseCanonical, text, type JsonObject } from "./json.js";
import { milliseconds, shapeFault } from "./shape.js";
import { sha256 } from "./sha2.js";

export type Role = "root" | "node" | "instance";

export interface Kind {
  readonly name: string;
  /** Of its payload; a kind has another shape in each. */
  readonly version: number;
  readonly role: Role;
  readonly numbered: boolean;
  readonly linked: boolean;
  readonly hasPrivate: boolean;
}

export const ENVELOPE_BYTES_MAX = 65535;

const INSTANCE_KINDS = [
  ...["instance_end", "instance_lost", "draw_window", "discarded_draw", "event", "artifact"],
  ...["table_round", "table_seats", "table_deal", "table_final"],
];
const LINKS = [
  ...["session_open", "purchase", "transfer", "free_bet", "round_opening", "round_final", "seat_opening", "seat_final"],
  ...["participation_end", "session_close"],
];
const WITH_PRIVATE = new Set(["session_open", "purchase", "participation_end"]);

function kinds(names: readonly string[], role: Role, numbered: boolean, linked: boolean): Kind[] {
  return names.map((name) => ({ name, version: 1, role, numbered, linked, hasPrivate: WITH_PRIVATE.has(name) }));
}

const KINDS: readonly Kind[] = [
  ...kinds(["instance_start"], "node", true, false),
  ...kinds(INSTANCE_KINDS, "instance", true, false),
  ...kinds(LINKS, "instance", true, true),
  ...kinds(["session_open"], "instance", true, true).map((kind) => ({ ...kind, version: 2 })),
  ...kinds(["root_key", "node_key", "key_end", "revocation"], "root", false, false),
  ...kinds(["export_scope", "report", "countersignature"], "node", false, false),
];

function payloadType({ name, version }: Kind): string {
  return `application/vnd.rgs.${name.replaceAll("_", "-")}.v${version}+json`;
}

const BY_TYPE = new Map(KINDS.map((kind) => [payloadType(kind), kind]));

/** The kind of a payload type; undefined for one that this verifier does not know. */
export function kindOf(type: string): Kind | undefined {
  return BY_TYPE.get(type);
}

/** An envelope in the one form: nothing of it is verified yet. */
export interface Envelope {
  readonly bytes: Bytes;
  readonly type: string;
  readonly payload: Bytes;
  readonly keyid: string;
  readonly signature: Bytes;
  /** The bytes that the key signed. */
  readonly signed: Bytes;
  /** SHA-256(00 || envelope), the RFC 6962 leaf hash. */
  readonly hash: Bytes;
}

const FORM =
  /^\{"payload":"([A-Za-z0-9+/]*={0,2})","payloadType":"([a-z0-9.+/-]+)","signatures":\[\{"keyid":"([0-9a-f]{64})","sig":"([A-Za-z0-9+/]*={0,2})"\}\]\}$/;
const LEAF = new Uint8Array([0]);

/** Check 2. */
export function parseEnvelope(bytes: Bytes): Envelope {
  demand(bytes.length <= ENVELOPE_BYTES_MAX, 2, `an envelope of ${bytes.length} bytes, at most ${ENVELOPE_BYTES_MAX}`);
  const parts = FORM.exec(ascii(bytes) ?? "");
  demand(parts !== null, 2, "the envelope is not in its one form");
  const [payload, signature] = [unbase64(parts[1]!), unbase64(parts[4]!)];
  demand(payload !== null && signature !== null, 2, "payload or signature is not base64 in its one form");
  demand(payload.length <= PAYLOAD_BYTES_MAX, 2, `a payload of ${payload.length} bytes, at most ${PAYLOAD_BYTES_MAX}`);
  demand(signature.length === 64, 2, `a signature of ${signature.length} bytes, not 64`);
  const type = parts[2]!;
  const signed = concat(utf8(`DSSEv1 ${type.length} ${type} ${payload.length} `), payload);
  return { bytes, type, payload, keyid: parts[3]!, signature, signed, hash: sha256(LEAF, bytes) };
}

/** A statement whose signature was verified, read by its schema. */
export interface Statement {
  readonly kind: Kind;
  readonly envelope: Envelope;
  readonly body: JsonObject;
  readonly hash: string;
  readonly time: number;
}

/** Check 4. */
export function readStatement(envelope: Envelope, kind: Kind): Statement {
  const document = ascii(envelope.payload);
  demand(document !== null, 4, "the payload is not ASCII");
  let body: JsonObject;
  try {
    body = parseCanonical(document);
  } catch (error) {
    if (error instanceof JsonError) demand(false, 4, `the payload is not canonical JSON: ${error.message}`);
    throw error;
  }
  const wrong = shapeFault(kind.version === 1 ? kind.name : `${kind.name}.v${kind.version}`, body);
  demand(wrong === "", 4, `${kind.name}: ${wrong}`);
  return { kind, envelope, body, hash: hex(envelope.hash), time: at(body, "time") };
}

/** Milliseconds since 1970 of a field of a statement whose schema was checked. */
export function at(body: JsonObject, key: string): number {
  const value = milliseconds(text(body, key));
  if (value === null) throw new TypeError(`${key} is no time`);
  return value;
}
