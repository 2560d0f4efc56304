/** Export lines (docs/formats.md 12): an envelope as it was signed, and what stands beside it. */

import { hex, latin1, unhex, utf8, type Bytes } from "./bytes.js";
import { demand } from "./checks.js";
import { formatCanonical, JsonError, objectAt, parseCanonical, text, type JsonObject } from "./json.js";
import { shapeFault } from "./shape.js";
import { tagged } from "./sha2.js";

export const LINE_BYTES_MAX = 73727;
const PATH_MAX = 20;
const HEAD = '{"envelope":';
const PRIVATE = ',"private":';
const PATH = ',"path":[';
const HASHES = /^"[0-9a-f]{64}"(?:,"[0-9a-f]{64}")*$/;
const SALT = /^[0-9a-f]{64}$/;

export interface PrivateBlock {
  readonly block: JsonObject;
  readonly salt: string;
}

export interface Line {
  readonly envelope: Bytes;
  readonly path: readonly Bytes[] | null;
  readonly private: PrivateBlock | null;
}

/** Check 1, of a line without its line feed. */
export function parseLine(bytes: Bytes): Line {
  demand(bytes.length <= LINE_BYTES_MAX, 1, `a line of ${bytes.length} bytes, at most ${LINE_BYTES_MAX}`);
  const line = latin1(bytes);
  demand(line.startsWith(HEAD), 1, "the line does not begin with an envelope");
  const before = line.indexOf(PRIVATE);
  demand(before > 0 && line.endsWith("}"), 1, "the line does not end with a private block or null");
  const block = parsePrivate(line.slice(before + PRIVATE.length, -1));
  const pathFrom = line.indexOf(PATH);
  const hasPath = pathFrom > 0 && pathFrom < before;
  const path = hasPath ? parsePath(line.slice(pathFrom + PATH.length, before)) : null;
  return { envelope: bytes.slice(HEAD.length, hasPath ? pathFrom : before), path, private: block };
}

function parsePath(list: string): readonly Bytes[] {
  demand(list.endsWith("]") && HASHES.test(list.slice(0, -1)), 1, "the path beside the statement is not in its one form");
  const hashes = list.slice(1, -2).split('","');
  demand(hashes.length <= PATH_MAX, 1, `a path of ${hashes.length} hashes, at most ${PATH_MAX}`);
  return hashes.map(unhex);
}

function parsePrivate(found: string): PrivateBlock | null {
  if (found === "null") return null;
  try {
    const document = parseCanonical(found);
    const block = objectAt(document, "block");
    const salt = text(document, "salt");
    demand(Object.keys(document).length === 2 && SALT.test(salt), 1, "the private block is not in its one form");
    const wrong = shapeFault("private_block", block);
    demand(wrong === "", 1, `the private block: ${wrong}`);
    return { block, salt };
  } catch (error) {
    if (error instanceof JsonError || error instanceof TypeError) {
      demand(false, 1, `the private block is not in its one form: ${error.message}`);
    }
    throw error;
  }
}

/** What a statement says of its private block: SHA-256("rgs/private/v1" 00 || salt || block). */
export function privateHash(found: PrivateBlock): string {
  return hex(tagged("rgs/private/v1", unhex(found.salt), utf8(formatCanonical(found.block))));
}

/** The lines of a file, each with its line feed; what stands behind the last one comes without. */
export function* splitLines(file: Bytes): Generator<Bytes> {
  for (let from = 0; from < file.length; ) {
    const end = file.indexOf(10, from);
    const to = end < 0 ? file.length : end + 1;
    yield file.slice(from, to);
    from = to;
  }
}
