/** `verifyReceipt`: what `certify receipt` does: one statement, its key path, and its place in a log that others watch. */

import { utf8, type Bytes } from "./bytes.js";
import { Fault } from "./checks.js";
import { KeyBook, type LogPlace } from "./keys.js";
import { keyPathOf, parseLogProof, parsePolicy, verifyInclusion, type Inclusion, type Policy } from "./log.js";
import { LogError } from "./note.js";
import { parseEnvelope, type Statement } from "./statements.js";

export interface ReceiptInput {
  /** The envelope of the statement, byte for byte. */
  readonly envelope: Bytes | string;
  /** Its `.tlog-proof`. */
  readonly proof: Bytes | string;
  /** Whom you trust about the log (C2SP tlog-policy), from another source than the receipt. */
  readonly policy: string;
  /** The newest key bundle, which knows what was revoked since; without it the proof's own key path is taken. */
  readonly keys?: Bytes | string;
}

export interface ReceiptReport {
  /** The signature verifies, the statement stands in the log, and the policy's quorum has seen it. */
  readonly passed: boolean;
  readonly verdict: "WITNESSED" | "SELF-WITNESSED" | "FAILED";
  readonly isAnchored: boolean;
  /** What does not hold; "" where all does. */
  readonly message: string;
  readonly kind: string;
  readonly hash: string;
  readonly root: string;
  readonly origin: string;
  readonly index: string;
  readonly size: string;
  /** The witnesses of the policy that cosigned the checkpoint, and when, in Unix seconds. */
  readonly witnesses: { readonly [name: string]: number };
  readonly isDevelopment: boolean;
}

function bytesOf(data: Bytes | string): Bytes {
  return typeof data === "string" ? utf8(data) : data;
}

/** Verifies a receipt. Never throws for what is wrong with it. */
export async function verifyReceipt(input: ReceiptInput, options: { readonly root?: string } = {}): Promise<ReceiptReport> {
  try {
    const policy = parsePolicy(input.policy);
    const proof = parseLogProof(bytesOf(input.proof));
    const envelope = bytesOf(input.envelope);
    const inclusion = await verifyInclusion(envelope, proof, policy);
    if (!inclusion.hasQuorum) throw new LogError(`the quorum ${policy.quorum} has not cosigned the checkpoint`);
    const path = keyPathOf(proof);
    const book = await KeyBook.open(input.keys === undefined ? path.bundle : bytesOf(input.keys), options.root);
    if (options.root !== undefined && !book.isAnchored) {
      throw new LogError(`the root of the keys is ${book.root}, not ${options.root}`);
    }
    const place = placeOf(inclusion, policy);
    const start = await book.verified(parseEnvelope(path.start), place);
    if (start.kind.name === "instance_start") book.takeStart(start);
    const statement = await book.verified(parseEnvelope(envelope), place);
    return report(book, inclusion, statement);
  } catch (error) {
    if (!(error instanceof LogError) && !(error instanceof Fault)) throw error;
    return { ...NOTHING, message: error.message };
  }
}

const NOTHING: ReceiptReport = {
  ...{ passed: false, verdict: "FAILED", isAnchored: false, message: "", kind: "", hash: "", root: "" },
  ...{ origin: "", index: "", size: "", witnesses: {}, isDevelopment: false },
};

/** Where the statement stands, and which checkpoints outsiders have cosigned over it. */
function placeOf(inclusion: Inclusion, policy: Policy): LogPlace {
  const { checkpoint, cosignatures, index } = inclusion;
  const outside = [...cosignatures].filter(([name]) => !policy.selfWitnesses.has(name));
  const { origin, size } = checkpoint;
  return { origin, index, witnessed: outside.map(([, seconds]) => ({ origin, size, time: seconds * 1000 })) };
}

function report(book: KeyBook, inclusion: Inclusion, statement: Statement): ReceiptReport {
  const { checkpoint, cosignatures, index, isSelfWitnessed } = inclusion;
  return {
    passed: true,
    verdict: isSelfWitnessed ? "SELF-WITNESSED" : "WITNESSED",
    isAnchored: book.isAnchored,
    message: "",
    kind: statement.kind.name,
    hash: statement.hash,
    root: book.root,
    origin: checkpoint.origin,
    index: String(index),
    size: String(checkpoint.size),
    witnesses: Object.fromEntries(cosignatures),
    isDevelopment: book.isDevelopment(statement),
  };
}
