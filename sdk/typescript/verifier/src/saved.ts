/**
 * What a player keeps of a round: the receipt that a page saves, and the files of a dispute (docs/formats.md, section 17).
 * Both are read into statements, proofs of the log and keys, and verified as `verifyRound` does.
 */

import { ascii, hex, same, unbase64, utf8, type Bytes } from "./bytes.js";
import { Fault } from "./checks.js";
import { verifyExport, type ExportReport } from "./export.js";
import { splitLines } from "./lines.js";
import { claimsOf, type Claims } from "./order.js";
import { verifyRound, type RoundInput, type RoundOptions, type RoundReport } from "./round.js";
import { kindOf, parseEnvelope } from "./statements.js";

export const RECEIPT_FORMAT = "rgs/page-receipt/v1";

/** A file that is no receipt and no dispute; the message says what it is instead. Nothing is said about a round. */
export class SavedFileError extends Error {
  override name = "SavedFileError";
}

type Fields = { readonly [name: string]: unknown };

/** The statements of a record, and what each may be. */
const PARTS: { readonly [name: string]: readonly string[] } = {
  table_round: ["table_round"],
  table_deal: ["table_deal"],
  opening: ["round_opening", "seat_opening"],
  table_final: ["table_final"],
  final: ["round_final", "seat_final"],
};
/** What a record says besides: for a page to show, signed by nobody, and not looked at. */
const SHOWN = ["summary", "round"];
const FIELDS = ["format", "record", "keys", "instances", "log_proofs"];

/** Reads a saved receipt. SavedFileError: it is none, or holds something that this verifier does not know. */
export function parseSavedReceipt(document: string): RoundInput {
  const receipt = fieldsOf(parseJson(document), "the file");
  if (receipt["format"] !== RECEIPT_FORMAT) {
    throw new SavedFileError(`the file's format is ${JSON.stringify(receipt["format"]) ?? "missing"}; this verifier knows ${RECEIPT_FORMAT}`);
  }
  demandKnown(receipt, FIELDS, "the receipt");
  const keys = listOf(receipt["keys"], "keys").map((one, at) => bytesOf(one, `keys[${at}]`));
  if (keys.length === 0) throw new SavedFileError("the receipt has no keys");
  const record = fieldsOf(receipt["record"], "the record");
  demandKnown(record, [...Object.keys(PARTS), ...SHOWN, "path", "free_bets"], "the record");
  const instances = Object.entries(fieldsOf(receipt["instances"], "instances"));
  const statements = [
    ...instances.map(([name, one]) => partOf(one, `instances.${name}`, ["instance_start"])),
    ...Object.entries(PARTS).flatMap(([name, kinds]) => (record[name] ? [partOf(record[name], `record.${name}`, kinds)] : [])),
    ...listOf(record["free_bets"], "record.free_bets").map((one, at) => partOf(one, `record.free_bets[${at}]`, ["free_bet"])),
  ];
  demandOneRound(statements);
  const path = listOf(record["path"], "record.path").map((one, at) => hex(bytesOf(one, `record.path[${at}]`)));
  const proofs = Object.entries(fieldsOf(receipt["log_proofs"], "log_proofs")).map(([name, proof]) => {
    if (typeof proof !== "string") throw new SavedFileError(`log_proofs.${name} is no text`);
    return proof;
  });
  return { keys, statements: statements.map(({ bytes }) => bytes), proofs, ...(path.length ? { path } : {}) };
}

/** Verifies a saved receipt. SavedFileError: it is none. */
export async function verifySavedReceipt(document: string, options: RoundOptions = {}): Promise<RoundReport> {
  return verifyRound(parseSavedReceipt(document), options);
}

export interface DisputeReport {
  /** The session, as `certify replay` judges it. */
  readonly session: ExportReport;
  /** The round of the complaint, with what a campaign paid for it, and its place in the log. */
  readonly round: RoundReport;
  /** Both hold. */
  readonly passed: boolean;
}

/**
 * Verifies the files of a dispute, by their names in the zip. `ruleset.json`, `page.html` and `README.txt` are not read:
 * the statements name their ruleset by hash. SavedFileError: a file is missing, or is not of the session.
 */
export async function verifyDispute(files: ReadonlyMap<string, Bytes>, options: RoundOptions = {}): Promise<DisputeReport> {
  const need = (name: string): Bytes => {
    const found = files.get(name);
    if (!found) throw new SavedFileError(`${name} is missing: this is no dispute`);
    return found;
  };
  const [lines, keys] = [need("session.jsonl"), need("keys.json")];
  const ends = [partOf(need("opening.json"), "opening.json", PARTS["opening"]!), partOf(need("final.json"), "final.json", PARTS["final"]!)];
  demandOneRound(ends);
  const statements = [...splitLines(lines)];
  for (const { name, bytes } of ends) {
    if (!holds(statements, bytes)) throw new SavedFileError(`${name} is no statement of session.jsonl`);
  }
  const session = await verifyExport(lines, keys, options);
  const proofs = ["opening.tlog-proof", "final.tlog-proof"].flatMap((name) => files.get(name) ?? []);
  const roundId = ends[0]!.claims.round;
  const round = await verifyRound({ keys, statements, proofs, roundId }, options);
  return { session, round, passed: session.passed && round.verdict === "verified" };
}

function holds(lines: readonly Bytes[], envelope: Bytes): boolean {
  const head = utf8(`{"envelope":${ascii(envelope) ?? ""},`);
  return lines.some((line) => line.length > head.length && same(line.slice(0, head.length), head));
}

interface Part {
  readonly name: string;
  readonly bytes: Bytes;
  readonly claims: Claims;
}

const NOTHING_CLAIMED: Claims = { rank: 0, instance: "", number: 0, link: 0, round: "", session: "" };

/** A statement, if it is of one of these kinds, or of a kind that `verifyRound` refuses. */
function partOf(value: unknown, name: string, kinds: readonly string[]): Part {
  const bytes = value instanceof Uint8Array ? (value as Bytes) : bytesOf(value, name);
  try {
    const envelope = parseEnvelope(bytes);
    const kind = kindOf(envelope.type)?.name ?? "";
    if (kind !== "" && !kinds.includes(kind)) throw new SavedFileError(`${name} is a ${kind}, not a ${kinds.join(" or ")}`);
    return { name, bytes, claims: claimsOf(kind, envelope) };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { name, bytes, claims: NOTHING_CLAIMED }; // verifyRound says what is wrong with it
  }
}

/** A receipt is of one round: a statement of another is no part of it, and is not passed over in silence. */
function demandOneRound(parts: readonly Part[]): void {
  const first = parts.find(({ claims }) => claims.round !== "");
  for (const { name, claims } of parts) {
    if (first && claims.round !== "" && claims.round !== first.claims.round) {
      throw new SavedFileError(`${name} is of round ${claims.round}, ${first.name} of round ${first.claims.round}`);
    }
  }
}

function parseJson(document: string): unknown {
  try {
    return JSON.parse(document);
  } catch {
    throw new SavedFileError("the file is no JSON");
  }
}

function fieldsOf(value: unknown, name: string): Fields {
  if (value === undefined && name !== "the record") return {};
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new SavedFileError(`${name} is no JSON object`);
  return value as Fields;
}

function listOf(value: unknown, name: string): readonly unknown[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new SavedFileError(`${name} is no list`);
  return value;
}

function demandKnown(fields: Fields, known: readonly string[], where: string): void {
  const strange = Object.keys(fields).find((name) => !known.includes(name));
  if (strange !== undefined) throw new SavedFileError(`${where} has a field ${strange.slice(0, 40)}, which this verifier does not know`);
}

function bytesOf(value: unknown, name: string): Bytes {
  const bytes = typeof value === "string" ? unbase64(value) : null;
  if (bytes === null) throw new SavedFileError(`${name} is no base64 text`);
  return bytes;
}
