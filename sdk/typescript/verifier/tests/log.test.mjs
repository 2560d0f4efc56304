/** The log of before 0.1.0, whose formats have not changed: every entry is proved, and nothing else is. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { base64, utf8 } from "../dist/bytes.js";
import { extendsCheckpoint, parseCheckpoint, parseLogProof, parseNote, parsePolicy } from "../dist/index.js";
import { verifyCheckpoint, verifyInclusion } from "../dist/index.js";
import { isConsistent, leafHash, nodeHash, rootOf, rootOfPath } from "../dist/merkle.js";
import { vector } from "./read.mjs";

const FOLDER = new URL("../../../../tests/vectors/before-0.1.0/log/", import.meta.url);
const NOTE = vector("before-0.1.0/log/checkpoint.cosigned");
const POLICY = parsePolicy(vector("before-0.1.0/policy.txt"));
const SIZE = 85;

/** The entries of a bundle: each behind its length in two bytes. */
function entries() {
  const data = new Uint8Array(readFileSync(new URL(`tile/entries/000.p/${SIZE}`, FOLDER)));
  const found = [];
  for (let at = 0; at < data.length; ) {
    const length = (data[at] << 8) | data[at + 1];
    found.push(data.slice(at + 2, at + 2 + length));
    at += 2 + length;
  }
  return found;
}

function audit(leaves, index) {
  if (leaves.length === 1) return [];
  let half = 1;
  while (half * 2 < leaves.length) half *= 2;
  const [left, right] = [leaves.slice(0, half), leaves.slice(half)];
  return index < half ? [...audit(left, index), rootOf(right)] : [...audit(right, index - half), rootOf(left)];
}

/** RFC 6962 2.1.2. */
function consistency(leaves, size, isWhole = true) {
  if (size === leaves.length) return isWhole ? [] : [rootOf(leaves)];
  let half = 1;
  while (half * 2 < leaves.length) half *= 2;
  const [left, right] = [leaves.slice(0, half), leaves.slice(half)];
  return size <= half
    ? [...consistency(left, size, isWhole), rootOf(right)]
    : [...consistency(right, size - half, false), rootOf(left)];
}

const ENTRIES = entries();
const LEAVES = ENTRIES.map(leafHash);

function proofOf(index, note = NOTE) {
  const hashes = audit(LEAVES, index).map((hash) => `${base64(hash)}\n`);
  return utf8(`c2sp.org/tlog-proof@v1\nindex ${index}\n${hashes.join("")}\n${note}`);
}

test("the checkpoint is signed and cosigned, and its root is that of the entries", async () => {
  const { checkpoint, hasQuorum, isSelfWitnessed, cosignatures } = await verifyCheckpoint(parseNote(utf8(NOTE)), POLICY);
  assert.deepEqual([checkpoint.size, hasQuorum, isSelfWitnessed], [BigInt(SIZE), true, true]);
  assert.deepEqual(checkpoint.root, rootOf(LEAVES));
  assert.deepEqual([...cosignatures.keys()], ["demo-witness"]);
  assert.ok(cosignatures.get("demo-witness") > 1_700_000_000);
});

test("every entry is included at its place, and at no other", async () => {
  for (let index = 0; index < SIZE; index += 1) {
    const found = await verifyInclusion(ENTRIES[index], parseLogProof(proofOf(index)), POLICY);
    assert.equal(found.index, BigInt(index));
    const other = parseLogProof(proofOf((index + 1) % SIZE));
    await assert.rejects(verifyInclusion(ENTRIES[index], other, POLICY), /is not number/);
  }
});

test("a changed entry, path or checkpoint is refused", async () => {
  const changed = ENTRIES[7].slice();
  changed[3] ^= 1;
  await assert.rejects(verifyInclusion(changed, parseLogProof(proofOf(7)), POLICY), /is not number 7/);
  const other = NOTE.replace(`\n${SIZE}\n`, "\n84\n");
  await assert.rejects(verifyInclusion(ENTRIES[7], parseLogProof(proofOf(7, other)), POLICY), /has not signed/);
  const proof = parseLogProof(proofOf(7));
  for (const path of [proof.path.slice(1), [...proof.path, proof.path[0]], [...proof.path].reverse()]) {
    await assert.rejects(verifyInclusion(ENTRIES[7], { ...proof, path }, POLICY), /is not number 7/);
  }
});

test("without its cosignature a checkpoint has no quorum", async () => {
  const lines = NOTE.split("\n").filter((line) => !line.includes("demo-witness"));
  const found = await verifyCheckpoint(parseNote(utf8(lines.join("\n"))), POLICY);
  assert.deepEqual([found.hasQuorum, found.cosignatures.size], [false, 0]);
  const bad = NOTE.replace("cMRNSAAAAABrA68H", "cMRNSAAAAABrA69H"); // another time
  assert.equal((await verifyCheckpoint(parseNote(utf8(bad)), POLICY)).hasQuorum, false);
});

test("trees of all sizes: paths lead to the root, and every tree begins with each smaller one", () => {
  const origin = "log.example/2026h2";
  for (let size = 1; size <= 33; size += 1) {
    const leaves = LEAVES.slice(0, size);
    const newer = { origin, size: BigInt(size), root: rootOf(leaves) };
    for (let index = 0; index < size; index += 1) {
      const path = audit(leaves, index);
      assert.deepEqual(rootOfPath(leaves[index], BigInt(index), BigInt(size), path), newer.root);
      assert.equal(rootOfPath(leaves[index], BigInt(size), BigInt(size), path), null);
      if (path.length) assert.notDeepEqual(rootOfPath(leaves[index], BigInt(index), BigInt(size), path.slice(1)), newer.root);
    }
    for (let old = 1; old <= size; old += 1) {
      const older = { origin, size: BigInt(old), root: rootOf(leaves.slice(0, old)) };
      const proof = consistency(leaves, old);
      assert.equal(extendsCheckpoint(older, newer, proof), true, `${old} of ${size}`);
      assert.equal(extendsCheckpoint({ ...older, root: nodeHash(older.root, older.root) }, newer, proof), false);
      assert.equal(extendsCheckpoint({ ...older, origin: "another/2026h2" }, newer, proof), false);
      assert.equal(isConsistent(older, newer, [...proof, older.root]), false);
      if (proof.length) assert.equal(isConsistent(older, newer, proof.slice(1)), false);
    }
  }
});

const LOG_KEY = vector("before-0.1.0/policy.txt").match(/^log (\S+)$/m)[1];
const WITNESS = vector("before-0.1.0/policy.txt").match(/^witness \S+ (\S+)/m)[1];
const BAD = [
  ["a quorum of none", `log ${LOG_KEY}\nquorum none\n`, /proves nothing/],
  ["no quorum", `log ${LOG_KEY}\nwitness w ${WITNESS}\n`, /proves nothing/],
  ["no log", `witness w ${WITNESS}\nquorum w\n`, /names a log/],
  ["one key twice", `log ${LOG_KEY}\nwitness w ${WITNESS}\nwitness v ${WITNESS}\nquorum w\n`, /twice/],
  ["a word that is not known", `log ${LOG_KEY}\nwitness w ${WITNESS}\ntrust w\nquorum w\n`, /not understood/],
  ["a group of strangers", `log ${LOG_KEY}\nwitness w ${WITNESS}\ngroup g 1 x\nquorum g\n`, /does not stand before it/],
  ["too high a threshold", `log ${LOG_KEY}\nwitness w ${WITNESS}\ngroup g 2 w\nquorum g\n`, /threshold/],
  ["a key with another hash", `log ${LOG_KEY.replace(/\+[0-9a-f]{8}\+/, "+00000000+")}\nquorum w\n`, /does not have the hash/],
];

for (const [what, policy, message] of BAD) {
  test(`a policy with ${what} is refused`, () => {
    assert.throws(() => parsePolicy(policy), message);
  });
}

test("groups count their members", async () => {
  const note = parseNote(utf8(NOTE));
  const policy = parsePolicy(`log ${LOG_KEY}\nwitness w ${WITNESS}\ngroup g any w\ngroup all all g\nquorum all\n`);
  const found = await verifyCheckpoint(note, policy);
  assert.deepEqual([found.hasQuorum, found.isSelfWitnessed], [true, false]);
});

const NO_CHECKPOINTS = ["o\n1\n", "o\n01\nAAAA\n", "o\n1\nAAAA\n", "\n1\nAAAA\n", `${NOTE.split("\n\n")[0]}\nmore\n`];

test("what is no checkpoint, note or proof is refused", () => {
  for (const text of NO_CHECKPOINTS) assert.throws(() => parseCheckpoint(text), /checkpoint/);
  for (const text of ["", "a", "a\n\n", "a\n\nb\n", "a\n\n\u2014 n AAAA"]) assert.throws(() => parseNote(utf8(text)));
  const good = new TextDecoder().decode(proofOf(3));
  for (const [from, to] of [["@v1", "@v2"], ["index 3", "index 03"], ["index 3", "place 3"], ["\n\n", "\n"]]) {
    assert.throws(() => parseLogProof(utf8(good.replace(from, to))));
  }
});
