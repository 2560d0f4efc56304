/** RFC 6962 trees over SHA-256: leaves, roots, audit and consistency paths (RFC 9162 2.1). */

import { same, type Bytes } from "./bytes.js";
import { sha256 } from "./sha2.js";

const LEAF = new Uint8Array([0]);
const NODE = new Uint8Array([1]);

export function leafHash(entry: Uint8Array): Bytes {
  return sha256(LEAF, entry);
}

export function nodeHash(left: Uint8Array, right: Uint8Array): Bytes {
  return sha256(NODE, left, right);
}

/** The root of a tree over leaf hashes; of none the hash of nothing. */
export function rootOf(leaves: readonly Bytes[]): Bytes {
  if (leaves.length === 0) return sha256();
  if (leaves.length === 1) return leaves[0]!;
  let half = 1;
  while (half * 2 < leaves.length) half *= 2;
  return nodeHash(rootOf(leaves.slice(0, half)), rootOf(leaves.slice(half)));
}

/** The root to which an audit path leads from a leaf, the sibling of the leaf first; null for a path of another length. */
export function rootOfPath(leaf: Bytes, index: bigint, size: bigint, path: readonly Bytes[]): Bytes | null {
  if (index < 0n || index >= size) return null;
  let [place, last, found] = [index, size - 1n, leaf];
  for (const sibling of path) {
    if (last === 0n) return null;
    if (place & 1n || place === last) {
      found = nodeHash(sibling, found);
      while (!(place & 1n) && place) {
        place >>= 1n;
        last >>= 1n;
      }
    } else {
      found = nodeHash(found, sibling);
    }
    place >>= 1n;
    last >>= 1n;
  }
  return last === 0n ? found : null;
}

/** Whether the tree of `size` leaves begins with that of `older`, by a proof of RFC 9162 2.1.4. */
export function isConsistent(
  older: { readonly size: bigint; readonly root: Bytes },
  newer: { readonly size: bigint; readonly root: Bytes },
  proof: readonly Bytes[],
): boolean {
  if (older.size > newer.size) return false;
  if (older.size === newer.size) return proof.length === 0 && same(older.root, newer.root);
  if (older.size === 0n) return proof.length === 0;
  const nodes = (older.size & (older.size - 1n)) === 0n ? [older.root, ...proof] : [...proof];
  const first = nodes.shift();
  if (!first) return false;
  let [place, last] = [older.size - 1n, newer.size - 1n];
  while (place & 1n) {
    place >>= 1n;
    last >>= 1n;
  }
  let [ofOlder, ofNewer] = [first, first];
  for (const node of nodes) {
    if (last === 0n) return false;
    if (place & 1n || place === last) {
      ofOlder = nodeHash(node, ofOlder);
      ofNewer = nodeHash(node, ofNewer);
      while (!(place & 1n) && place) {
        place >>= 1n;
        last >>= 1n;
      }
    } else {
      ofNewer = nodeHash(ofNewer, node);
    }
    place >>= 1n;
    last >>= 1n;
  }
  return last === 0n && same(ofOlder, older.root) && same(ofNewer, newer.root);
}
