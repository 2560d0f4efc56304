/** A log of one day, made in a test: keys, policy, cosigned checkpoint and proofs (C2SP). */

import { webcrypto } from "node:crypto";
import { base64, concat, hex, utf8 } from "../dist/bytes.js";
import { leafHash, rootOf } from "../dist/merkle.js";
import { sha256 } from "../dist/sha2.js";

const crypto = globalThis.crypto ?? webcrypto;

async function keyOf(name, type) {
  const { publicKey, privateKey } = await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"]);
  const data = concat(new Uint8Array([type]), new Uint8Array(await crypto.subtle.exportKey("raw", publicKey)));
  const hash = sha256(utf8(`${name}\n`), data).slice(0, 4);
  const sign = async (bytes) => new Uint8Array(await crypto.subtle.sign("Ed25519", privateKey, bytes));
  return { name, hash, sign, vkey: `${name}+${hex(hash)}+${base64(data)}` };
}

/** RFC 6962 2.1.1. */
function audit(leaves, index) {
  if (leaves.length === 1) return [];
  let half = 1;
  while (half * 2 < leaves.length) half *= 2;
  const [left, right] = [leaves.slice(0, half), leaves.slice(half)];
  return index < half ? [...audit(left, index), rootOf(right)] : [...audit(right, index - half), rootOf(left)];
}

function line({ name, hash }, signature) {
  return `— ${name} ${base64(concat(hash, signature))}\n`;
}

/** A log of these entries; `policy` trusts it and its witness. */
export async function notary(entries, origin = "log.example/2026h2") {
  const [log, witness] = [await keyOf(origin, 1), await keyOf("witness.example", 4)];
  const leaves = entries.map((entry) => leafHash(entry));
  const text = `${origin}\n${leaves.length}\n${base64(rootOf(leaves))}\n`;
  const signed = line(log, await log.sign(utf8(text)));
  const time = new Uint8Array(8);
  new DataView(time.buffer).setBigUint64(0, 1_780_000_000n);
  const cosigned = line(witness, concat(time, await witness.sign(utf8(`cosignature/v1\ntime 1780000000\n${text}`))));
  const proof = (index, note) => {
    const hashes = audit(leaves, index).map((hash) => `${base64(hash)}\n`);
    return `c2sp.org/tlog-proof@v1\nindex ${index}\n${hashes.join("")}\n${note}`;
  };
  return {
    policy: `log ${log.vkey}\nwitness w ${witness.vkey}\nquorum w\n`,
    /** The proof of the entry with this index. */
    proof: (index) => proof(index, `${text}\n${signed}${cosigned}`),
    /** The same of a checkpoint that nobody has cosigned. */
    unseen: (index) => proof(index, `${text}\n${signed}`),
  };
}
