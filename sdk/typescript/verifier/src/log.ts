/** Inclusion in the transparency log: policies and proofs (C2SP tlog-policy, tlog-proof v1; docs/formats.md 16, 17). */

import { hex, latin1, same, unbase64, utf8, type Bytes } from "./bytes.js";
import { isConsistent, leafHash, rootOfPath } from "./merkle.js";
import { decodeUtf8, demandLog, LogError, parseCheckpoint, parseNote, parseVerifierKey, signedAt } from "./note.js";
import type { Checkpoint, Note, VerifierKey } from "./note.js";

const HEADER = "c2sp.org/tlog-proof@v1";
const PROOF_BYTES_MAX = 1 << 21;
const PATH_MAX = 63;
const BUNDLE_FOOT = "\n]}\n";
const SELF = /^#\s*self-witness\s+(\S+)\s*$/;

interface Group {
  readonly threshold: number;
  readonly members: readonly string[];
}

/** Whom you trust about a log. */
export interface Policy {
  readonly logs: readonly VerifierKey[];
  readonly witnesses: ReadonlyMap<string, VerifierKey>;
  readonly groups: ReadonlyMap<string, Group>;
  readonly quorum: string;
  /** Witnesses that the licensee runs itself: their word is no more than its own. */
  readonly selfWitnesses: ReadonlySet<string>;
}

/** A policy. LogError: a line that is not understood, or a quorum of none. */
export function parsePolicy(document: string): Policy {
  const [witnesses, groups, names, keys] = [new Map<string, VerifierKey>(), new Map<string, Group>(), new Set<string>(), new Set<string>()];
  const [logs, selfWitnesses]: [VerifierKey[], Set<string>] = [[], new Set()];
  let quorum = "";
  const key = (text: string | undefined): VerifierKey => {
    const found = parseVerifierKey(text ?? "");
    demandLog(!keys.has(hex(found.publicKey)), `the policy names the key of ${found.name} twice`);
    keys.add(hex(found.publicKey));
    return found;
  };
  const take = (name: string | undefined): string => {
    demandLog(name !== undefined && name !== "none" && !names.has(name), `the policy names ${name ?? "nothing"} twice`);
    names.add(name);
    return name;
  };
  for (const line of document.split("\n")) {
    const self = SELF.exec(line);
    if (self) selfWitnesses.add(self[1]!);
    const [word, ...rest] = line.trim().split(/\s+/);
    if (word === undefined || word === "" || word.startsWith("#")) continue;
    if (word === "log" && rest.length >= 1 && rest.length <= 2) logs.push(key(rest[0]));
    else if (word === "witness" && rest.length >= 2 && rest.length <= 3) witnesses.set(take(rest[0]), key(rest[1]));
    else if (word === "group" && rest.length >= 3) groups.set(take(rest[0]), groupOf(rest.slice(1), names));
    else if (word === "quorum" && rest.length === 1 && quorum === "") quorum = rest[0]!;
    else throw new LogError(`a line of the policy is not understood: ${line.slice(0, 100)}`);
  }
  demandLog(logs.length > 0 && logs.every((one) => one.type === 1), "a policy names a log, by a key of type 1");
  demandLog(quorum !== "none" && names.has(quorum), `the quorum is ${quorum || "not there"}: a log that nobody watches proves nothing`);
  for (const name of selfWitnesses) demandLog(witnesses.has(name), `the self-witness ${name} is no witness of the policy`);
  return { logs, witnesses, groups, quorum, selfWitnesses };
}

function groupOf([threshold = "", ...members]: readonly string[], known: ReadonlySet<string>): Group {
  for (const member of members) demandLog(known.has(member), `the member ${member} of a group does not stand before it`);
  const count = threshold === "all" ? members.length : threshold === "any" ? 1 : /^[1-9][0-9]?$/.test(threshold) ? Number(threshold) : 0;
  demandLog(count >= 1 && count <= members.length, `a group of ${members.length} with the threshold ${threshold}`);
  demandLog(new Set(members).size === members.length, "a group names a member twice");
  return { threshold: count, members };
}

function isMet(policy: Policy, name: string, present: ReadonlySet<string>): boolean {
  const group = policy.groups.get(name);
  if (!group) return present.has(name);
  return group.members.filter((member) => isMet(policy, member, present)).length >= group.threshold;
}

/** A checkpoint that the log has signed, and who has cosigned it. */
export interface WitnessedCheckpoint {
  readonly checkpoint: Checkpoint;
  /** By the policy's name of the witness: Unix seconds. */
  readonly cosignatures: ReadonlyMap<string, number>;
  readonly hasQuorum: boolean;
  /** The quorum is met, but not without the licensee's own witnesses. */
  readonly isSelfWitnessed: boolean;
}

/** Verifies the note of a checkpoint. LogError: the log of the policy has not signed it. */
export async function verifyCheckpoint(note: Note, policy: Policy): Promise<WitnessedCheckpoint> {
  const checkpoint = parseCheckpoint(note.text);
  const keys = policy.logs.filter((key) => key.name === checkpoint.origin);
  demandLog(keys.length > 0, `the policy has no log ${checkpoint.origin}`);
  const signed = await Promise.all(keys.map((key) => signedAt(note, key)));
  demandLog(signed.some((time) => time !== null), `the log ${checkpoint.origin} has not signed this checkpoint`);
  const cosignatures = new Map<string, number>();
  for (const [name, key] of policy.witnesses) {
    const time = await signedAt(note, key);
    if (time !== null) cosignatures.set(name, time);
  }
  const present = new Set(cosignatures.keys());
  const others = new Set([...present].filter((name) => !policy.selfWitnesses.has(name)));
  const hasQuorum = isMet(policy, policy.quorum, present);
  return { checkpoint, cosignatures, hasQuorum, isSelfWitnessed: hasQuorum && !isMet(policy, policy.quorum, others) };
}

export interface LogProof {
  readonly index: bigint;
  readonly path: readonly Bytes[];
  readonly note: Note;
  /** The key path; it proves nothing by itself, and verifies from the root. */
  readonly extra: Bytes | null;
}

function hashOf(line: string): Bytes {
  const hash = unbase64(line);
  demandLog(hash !== null && hash.length === 32, "a hash of the proof is not 32 bytes of base64");
  return hash;
}

/** A `.tlog-proof` file. */
export function parseLogProof(bytes: Bytes): LogProof {
  demandLog(bytes.length <= PROOF_BYTES_MAX, `a proof of ${bytes.length} bytes, at most ${PROOF_BYTES_MAX}`);
  const document = decodeUtf8(bytes, "a proof");
  const split = document.indexOf("\n\n");
  demandLog(split >= 0, "a proof is its lines, an empty line, and a checkpoint");
  const [header, ...lines] = document.slice(0, split).split("\n");
  demandLog(header === HEADER, `a proof begins with ${HEADER}`);
  let extra: Bytes | null = null;
  if (lines[0]?.startsWith("extra ")) {
    extra = unbase64(lines.shift()!.slice("extra ".length));
    demandLog(extra !== null, "the extra data of a proof is not base64");
  }
  const index = /^index (0|[1-9][0-9]{0,17})$/.exec(lines.shift() ?? "");
  demandLog(index !== null, "a proof names the index of its entry");
  demandLog(lines.length <= PATH_MAX, `a proof of ${lines.length} hashes, at most ${PATH_MAX}`);
  return { index: BigInt(index[1]!), path: lines.map(hashOf), note: parseNote(utf8(document.slice(split + 2))), extra };
}

export interface Inclusion extends WitnessedCheckpoint {
  readonly index: bigint;
  readonly leaf: string;
}

/** Verifies that an entry stands in the log: LogError says what does not hold. Look at `hasQuorum` of the answer, too. */
export async function verifyInclusion(entry: Bytes, proof: LogProof, policy: Policy): Promise<Inclusion> {
  const witnessed = await verifyCheckpoint(proof.note, policy);
  const { size, root } = witnessed.checkpoint;
  const leaf = leafHash(entry);
  const found = rootOfPath(leaf, proof.index, size, proof.path);
  demandLog(found !== null && same(found, root), `the entry is not number ${proof.index} of the log of ${size} entries`);
  return { ...witnessed, index: proof.index, leaf: hex(leaf) };
}

/** Whether a later checkpoint of the same log begins with an earlier one, by a consistency proof. */
export function extendsCheckpoint(older: Checkpoint, newer: Checkpoint, proof: readonly Bytes[]): boolean {
  return older.origin === newer.origin && isConsistent(older, newer, proof);
}

/** The extra data of a receipt's proof: a key bundle, then the envelope of an instance_start, then a line feed. */
export function keyPathOf({ extra }: LogProof): { readonly bundle: Bytes; readonly start: Bytes } {
  const document = extra ? latin1(extra) : "";
  const foot = document.indexOf(BUNDLE_FOOT);
  demandLog(foot >= 0 && document.endsWith("\n"), "the extra data of the proof is no key path");
  const end = foot + BUNDLE_FOOT.length;
  return { bundle: extra!.slice(0, end), start: extra!.slice(end, -1) };
}
