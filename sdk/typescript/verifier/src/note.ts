/** C2SP signed notes: verifier keys, signatures, cosignatures, checkpoints (c2sp.org/signed-note, /tlog-checkpoint). */

import { base64, concat, same, unbase64, utf8, type Bytes } from "./bytes.js";
import { verifySignature } from "./ed25519.js";
import { sha256 } from "./sha2.js";

const NOTE_BYTES_MAX = 1 << 20;
const SIGNATURES_MAX = 100;
const LINE = /^\u2014 ([^\s+]+) ([A-Za-z0-9+/]+={0,2})$/;
const KEY = /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+={0,2})$/;
const SIZE = /^(?:0|[1-9][0-9]{0,17})$/;
const ED25519 = 1;
const COSIGNATURE = 4;

/** What is wrong with a note, a policy or a proof. */
export class LogError extends Error {
  override name = "LogError";
}

export function demandLog(holds: boolean, message: string): asserts holds {
  if (!holds) throw new LogError(message);
}

/** Who may sign a note. */
export interface VerifierKey {
  readonly name: string;
  readonly hash: Bytes;
  /** 1 signs the text, 4 cosigns it with a time. */
  readonly type: number;
  readonly publicKey: Bytes;
}

export function parseVerifierKey(text: string): VerifierKey {
  const parts = KEY.exec(text);
  const data = parts && unbase64(parts[3]!);
  demandLog(parts !== null && data !== null && data !== undefined, `not a verifier key: ${text.slice(0, 100)}`);
  const [type, publicKey] = [data[0], data.slice(1)];
  demandLog(type === ED25519 || type === COSIGNATURE, `the verifier key of ${parts[1]} is of type ${type}, known are 1 and 4`);
  demandLog(publicKey.length === 32, `the verifier key of ${parts[1]} has ${publicKey.length} bytes, not 32`);
  const hash = sha256(utf8(`${parts[1]}\n`), data).slice(0, 4);
  const shown = [...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  demandLog(shown === parts[2], `the verifier key of ${parts[1]} does not have the hash ${parts[2]}`);
  return { name: parts[1]!, hash, type, publicKey };
}

export interface Note {
  /** With its line feed. */
  readonly text: string;
  readonly signatures: readonly { readonly name: string; readonly hash: Bytes; readonly signature: Bytes }[];
}

export function decodeUtf8(bytes: Bytes, what: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new LogError(`${what} is not UTF-8`);
  }
}

export function parseNote(bytes: Bytes): Note {
  demandLog(bytes.length <= NOTE_BYTES_MAX, `a note of ${bytes.length} bytes, at most ${NOTE_BYTES_MAX}`);
  const document = decodeUtf8(bytes, "a note");
  const split = document.lastIndexOf("\n\n");
  demandLog(split >= 0 && document.endsWith("\n"), "a note is a text, an empty line, and lines of signatures");
  const lines = document.slice(split + 2, -1).split("\n");
  demandLog(lines.length <= SIGNATURES_MAX, `a note with ${lines.length} signatures, at most ${SIGNATURES_MAX}`);
  const signatures = lines.map((line) => {
    const parts = LINE.exec(line);
    const data = parts && unbase64(parts[2]!);
    demandLog(parts !== null && data !== null && data !== undefined && data.length > 4, "a line of the note is no signature");
    return { name: parts[1]!, hash: data.slice(0, 4), signature: data.slice(4) };
  });
  return { text: document.slice(0, split + 1), signatures };
}

/** The time of a key's signature in Unix seconds, 0 of one without a time; null where the note has none that verifies. */
export async function signedAt(note: Note, key: VerifierKey): Promise<number | null> {
  const text = utf8(note.text);
  for (const { name, hash, signature } of note.signatures) {
    if (name !== key.name || !same(hash, key.hash)) continue;
    if (key.type === ED25519) {
      if (await verifySignature(key.publicKey, text, signature)) return 0;
    } else if (signature.length === 72) {
      const time = new DataView(signature.buffer, signature.byteOffset).getBigUint64(0);
      const message = concat(utf8(`cosignature/v1\ntime ${time}\n`), text);
      if (time > 0n && time < 1n << 40n && (await verifySignature(key.publicKey, message, signature.slice(8)))) return Number(time);
    }
  }
  return null;
}

export interface Checkpoint {
  readonly origin: string;
  readonly size: bigint;
  readonly root: Bytes;
}

/** The checkpoint in the text of a note. Our logs have no extension lines. */
export function parseCheckpoint(text: string): Checkpoint {
  const lines = text.split("\n");
  demandLog(lines.length === 4 && lines[3] === "" && lines[0] !== "", "a checkpoint has origin, size and root, a line each");
  const root = unbase64(lines[2]!);
  demandLog(SIZE.test(lines[1]!), `a checkpoint's size is a number: ${lines[1]!.slice(0, 40)}`);
  demandLog(root !== null && root.length === 32 && base64(root) === lines[2], "a checkpoint's root is 32 bytes of base64");
  return { origin: lines[0]!, size: BigInt(lines[1]!), root };
}
