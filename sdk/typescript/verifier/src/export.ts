/** `verifyExport`: what `certify replay` does, from the bytes of an export and a key bundle. */

import { utf8, type Bytes } from "./bytes.js";
import { CHECKS, Fault, type CheckNo } from "./checks.js";
import { KeyBook } from "./keys.js";
import { splitLines } from "./lines.js";
import { Replay, type Counts } from "./replay/replay.js";
import { Rulebook, shippedRules } from "./rules.js";

export interface Failure {
  readonly check: CheckNo;
  readonly name: string;
  readonly message: string;
  /** The line, from 1; null: the key bundle, or the end of the files. */
  readonly line: number | null;
  readonly place: "line" | "keys" | "end";
}

export interface ExportReport {
  readonly failures: readonly Failure[];
  readonly counts: Counts | null;
  readonly root: string;
  readonly verdict: "ANCHORED" | "UNANCHORED";
  /** No check failed, the root is not another than the one given, and at least one round was verified. */
  readonly passed: boolean;
  /** `N rounds verified, N failed, ANCHORED|UNANCHORED`, the last line of `certify replay`. */
  readonly lastLine: string;
}

export interface ExportOptions {
  /** The fingerprint of the root, brought by another way than the files. */
  readonly root?: string;
  /** Canonical forms of rulesets and jurisdictions that are not shipped. */
  readonly rulesets?: readonly string[];
  readonly jurisdictions?: readonly string[];
}

export type Lines = Iterable<Bytes | string> | AsyncIterable<Bytes | string>;

function bytesOf(data: Bytes | string): Bytes {
  return typeof data === "string" ? utf8(data) : data;
}

/** Verifies an export: one file, or lines each with its line feed. */
export async function verifyExport(
  lines: Bytes | string | Lines,
  keyBundle: Bytes | string,
  options: ExportOptions = {},
): Promise<ExportReport> {
  const failures: Failure[] = [];
  const fail = (fault: Fault, place: Failure["place"], line: number | null): void => {
    failures.push({ check: fault.check, name: CHECKS[fault.check], message: fault.message, line, place });
  };
  let keys: KeyBook;
  try {
    keys = await KeyBook.open(bytesOf(keyBundle), options.root);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    fail(error, "keys", null);
    return report(failures, null, "", "UNANCHORED");
  }
  if (options.root !== undefined && !keys.isAnchored) {
    fail(new Fault(3, `the root of the key bundle is ${keys.root}, not ${options.root}`), "keys", null);
  }
  const hasMore = (options.rulesets?.length ?? 0) + (options.jurisdictions?.length ?? 0) > 0;
  const replay = new Replay(keys, hasMore ? new Rulebook(options) : shippedRules());
  let number = 0;
  const source = typeof lines === "string" || lines instanceof Uint8Array ? splitLines(bytesOf(lines)) : lines;
  for await (const line of source) {
    number += 1;
    for (const fault of await replay.feed(bytesOf(line))) fail(fault, "line", number);
  }
  for (const fault of replay.finish()) fail(fault, "end", null);
  return report(failures, replay.counts, keys.root, keys.isAnchored ? "ANCHORED" : "UNANCHORED");
}

function report(
  failures: readonly Failure[],
  counts: Counts | null,
  root: string,
  verdict: ExportReport["verdict"],
): ExportReport {
  const [verified, failed] = [counts?.roundsVerified ?? 0, counts?.roundsFailed ?? 0];
  const lastLine = `${verified} rounds verified, ${failed} failed, ${verdict}`;
  return { failures, counts, root, verdict, passed: failures.length === 0 && verified > 0, lastLine };
}
