/** The key path (docs/formats.md 3 and 13): from a pinned root over node keys to the keys of instances. Checks 2 to 4. */

import { ascii, hex, unhex, utf8, type Bytes } from "./bytes.js";
import { demand } from "./checks.js";
import { verifySignature } from "./ed25519.js";
import { has, objectAt, text, textOr, whole } from "./json.js";
import { sha256Hex } from "./sha2.js";
import { kindOf, parseEnvelope, readStatement } from "./statements.js";
import type { Envelope, Kind, Role, Statement } from "./statements.js";

export const BUNDLE_BYTES_MAX = 1 << 22;
const BUNDLE_HEAD = '{"format":"rgs/keys/v1","statements":[\n';
const BUNDLE_TAIL = "\n]}\n";

interface End {
  readonly time: number;
  readonly instance: string;
  readonly last: bigint;
}

/** From where on a revocation refuses: a place of a shard of the log; null: everywhere. */
interface Revocation {
  readonly time: number;
  readonly place: { readonly origin: string; readonly size: bigint } | null;
}

export interface Key {
  readonly keyid: string;
  readonly role: Role;
  readonly publicKey: Bytes;
  readonly above: Key | null;
  /** The node's or instance's. */
  readonly name: string;
  /** The time of the statement that names the key. */
  readonly time: number;
  readonly isDevelopment: boolean;
  readonly namedBy: Statement;
}

/** Where in a log a statement was read, and the cosigned checkpoints that cover it. */
export interface LogPlace {
  readonly origin: string;
  readonly index: bigint;
  readonly witnessed: readonly { readonly origin: string; readonly size: bigint; readonly time: number }[];
}

export class KeyBook {
  /** The fingerprint of the first root. */
  readonly root: string;
  readonly isAnchored: boolean;
  /** The statements of the bundle in their order. */
  readonly bundle: readonly Statement[] = [];
  isCut = false;
  /** Whether all statements of an instance up to any that the files hold are there too. */
  showsBeginning: (instance: string) => boolean = () => true;
  private readonly keys = new Map<string, Key>();
  private readonly ends = new Map<string, End[]>();
  private readonly revocations = new Map<string, Revocation[]>();
  private readonly inBundle = new Map<string, Statement>();
  private readonly jumped = new Set<string>();
  /** Of instances that ended: the reason. */
  private readonly ended = new Map<string, string>();
  private readonly starts = new Map<string, Statement>();

  private constructor(root: string, pinned: string | undefined) {
    this.root = root;
    this.isAnchored = root === pinned;
  }

  /** Reads and verifies a key bundle. Fault: one bad statement makes the whole bundle bad. */
  static async open(bundle: Bytes, pinned?: string): Promise<KeyBook> {
    demand(bundle.length <= BUNDLE_BYTES_MAX, 3, `a key bundle of ${bundle.length} bytes, at most ${BUNDLE_BYTES_MAX}`);
    const document = ascii(bundle);
    const hasForm = document !== null && document.startsWith(BUNDLE_HEAD) && document.endsWith(BUNDLE_TAIL);
    demand(hasForm, 3, "the key bundle is not in its one form");
    const envelopes = document.slice(BUNDLE_HEAD.length, -BUNDLE_TAIL.length).split(",\n");
    return KeyBook.of(envelopes.map(utf8), pinned);
  }

  /** The same from the envelopes of key statements, as a receipt's proof carries them. */
  static async of(envelopes: readonly Bytes[], pinned?: string): Promise<KeyBook> {
    const read = envelopes.map(parseEnvelope);
    demand(read.length > 0, 3, "there is no key statement");
    const book = new KeyBook(read[0]!.keyid, pinned);
    let newest: Key | null = null;
    for (const envelope of read) newest = await book.take(envelope, newest);
    return book;
  }

  private async take(envelope: Envelope, newest: Key | null): Promise<Key> {
    const kind = kindOf(envelope.type);
    demand(kind?.role === "root", 3, `${envelope.type} is no statement of a key bundle`);
    const statement = readStatement(envelope, kind);
    const { body } = statement;
    if (newest === null) {
      demand(kind.name === "root_key" && !has(body, "previous"), 3, "the first key statement is not the first root's");
      newest = this.name(statement, "root", null);
      demand(newest.keyid === envelope.keyid, 3, "the first root key has not signed itself");
    }
    demand(envelope.keyid === newest.keyid, 3, `${kind.name} is not signed by the newest root before it`);
    const isSigned = await verifySignature(newest.publicKey, envelope.signed, envelope.signature);
    demand(isSigned, 3, `the signature of a ${kind.name} of the key bundle does not verify`);
    demand(statement.time >= newest.time, 3, `${kind.name} is dated before the root key that signs it`);
    this.checkEnds(statement, newest);
    (this.bundle as Statement[]).push(statement);
    this.inBundle.set(statement.hash, statement);
    if (kind.name === "key_end") this.takeEnd(statement);
    if (kind.name === "revocation") this.takeRevocation(statement);
    if (kind.name === "node_key") this.name(statement, "node", newest);
    if (kind.name === "root_key" && this.bundle.length > 1) {
      demand(textOr(body, "previous") === newest.keyid, 3, "a further root key does not name the root before it");
      return this.name(statement, "root", newest);
    }
    return newest;
  }

  /** Takes the key that a statement names. */
  private name(statement: Statement, role: Role, above: Key | null): Key {
    const { body } = statement;
    const publicKey = unhex(text(body, "public_key"));
    const keyid = sha256Hex(publicKey);
    demand(!this.keys.has(keyid), 3, `the key ${keyid} is named twice`);
    const name = role === "root" ? "" : text(body, role);
    const isDevelopment = body["development"] === true;
    const key = { keyid, role, publicKey, above, name, time: statement.time, isDevelopment, namedBy: statement };
    this.keys.set(keyid, key);
    return key;
  }

  private takeEnd({ body, time }: Statement): void {
    const hasInstance = has(body, "instance");
    demand(hasInstance === has(body, "last_statement_no"), 3, "a key_end has instance and last_statement_no, or neither");
    const last = hasInstance ? whole(body, "last_statement_no") : 0n;
    push(this.ends, text(body, "key"), { time, instance: textOr(body, "instance"), last });
  }

  private takeRevocation({ body, time }: Statement): void {
    const hasPlace = has(body, "origin");
    demand(hasPlace === has(body, "size"), 3, "a revocation has origin and size, or neither");
    const place = hasPlace ? { origin: text(body, "origin"), size: whole(body, "size") } : null;
    push(this.revocations, text(body, "key"), { time, place });
  }

  /** The statement of an envelope whose key and signature are good. Fault 3 or 4. */
  async verified(envelope: Envelope, place: LogPlace | null = null): Promise<Statement> {
    const kind = kindOf(envelope.type);
    demand(kind !== undefined, 3, `the payload type ${envelope.type} is not known to this verifier`);
    if (kind.role === "root") {
      const statement = this.inBundle.get(hex(envelope.hash));
      demand(statement !== undefined, 3, `this ${kind.name} does not stand in the key bundle`);
      return statement;
    }
    const key = this.keyOf(envelope, kind, place);
    const isSigned = await verifySignature(key.publicKey, envelope.signed, envelope.signature);
    demand(isSigned, 3, `the signature by the key ${key.keyid} does not verify`);
    const statement = readStatement(envelope, kind);
    this.checkHolder(statement, key);
    this.checkEnds(statement, key);
    const earliest = this.earliest(key);
    demand(statement.time >= earliest, 3, `${kind.name} is dated before the statement that names its key`);
    if (kind.name === "event" && text(statement.body, "code") === "TIME_JUMP") this.jumped.add(key.name);
    if (kind.name === "instance_end") this.ended.set(key.name, text(statement.body, "reason"));
    return statement;
  }

  /** The known key of an envelope, of the role that the kind demands and not revoked. */
  private keyOf(envelope: Envelope, kind: Kind, place: LogPlace | null): Key {
    const key = this.keys.get(envelope.keyid);
    demand(key !== undefined, 3, `the key ${envelope.keyid} is not known`);
    demand(key.role === kind.role, 3, `a ${kind.name} is signed by a key of the role ${key.role}, not ${kind.role}`);
    for (let one: Key | null = key; one; one = one.above) {
      const refusing = (this.revocations.get(one.keyid) ?? []).some((revocation) => !stands(revocation, place));
      demand(!refusing, 3, `the key ${one.keyid} (${one.role}) is revoked`);
    }
    return key;
  }

  private checkHolder({ kind, body }: Statement, key: Key): void {
    if (key.role === "instance") {
      demand(text(body, "instance") === key.name, 3, `the key is that of ${key.name}, not ${text(body, "instance")}`);
    } else if (kind.name === "instance_start") {
      demand(text(body, "node") === key.name, 3, `the key is that of the node ${key.name}, not ${text(body, "node")}`);
    }
  }

  /** Not after an orderly end of the key, nor, by its number, after that of the node key above. */
  private checkEnds({ kind, body, time }: Statement, key: Key): void {
    const isBehind = (end: End): boolean =>
      kind.numbered && end.instance === text(body, "instance") && whole(body, "statement_no") > end.last;
    for (const end of this.ends.get(key.keyid) ?? []) {
      const onlyNumber = key.role === "instance" && end.instance !== "";
      demand(onlyNumber || time <= end.time, 3, `${kind.name} is dated after the end of its key`);
      demand(!onlyNumber || end.instance === key.name, 3, `the key of ${key.name} ended as that of ${end.instance}`);
      demand(!isBehind(end), 3, `${kind.name} is numbered above the last statement before its key's end`);
    }
    if (key.role !== "instance" || !key.above) return;
    const behind = (this.ends.get(key.above.keyid) ?? []).some(isBehind);
    demand(!behind, 3, `${kind.name} is numbered above the last statement before the end of the node key`);
  }

  /** Before what time a key signs nothing. */
  private earliest(key: Key): number {
    if (key.role !== "instance") return key.time;
    if (this.jumped.has(key.name)) return -Infinity;
    let limit = key.time;
    // A cut may lack what says why an instance signs earlier dates.
    if (!this.showsBeginning(key.name)) return -Infinity;
    for (let start = key.namedBy; has(start.body, "previous_boot"); ) {
      const before = text(objectAt(start.body, "previous_boot"), "instance");
      const previous = this.starts.get(before);
      if (!previous) return this.isCut ? -Infinity : limit;
      const reason = this.ended.get(before);
      // A cut may lack the end of the boot before: then it counts as one whose keys have changed.
      if (reason !== "KEYS_CHANGED" && !(this.isCut && reason === undefined)) return limit;
      if (!this.showsBeginning(before)) return -Infinity;
      limit = Math.min(limit, previous.time);
      start = previous;
    }
    return limit;
  }

  /** Takes the key that an instance_start names. */
  takeStart(statement: Statement): void {
    const node = this.keys.get(statement.envelope.keyid) ?? null;
    const keyid = sha256Hex(unhex(text(statement.body, "public_key")));
    const known = this.keys.get(keyid);
    demand(!known || known.namedBy.hash === statement.hash, 3, `the key ${keyid} is named twice`);
    if (known) return;
    const key = this.name(statement, "instance", node);
    this.starts.set(key.name, statement);
  }

  /** Whether the key of this statement, or one above it, is marked as not for real money. */
  isDevelopment(statement: Statement): boolean {
    for (let key = this.keys.get(statement.envelope.keyid) ?? null; key; key = key.above) {
      if (key.isDevelopment) return true;
    }
    return false;
  }

  /** The keys from the root to the one that signed. */
  path(keyid: string): readonly Key[] {
    const found: Key[] = [];
    for (let key = this.keys.get(keyid) ?? null; key; key = key.above) found.unshift(key);
    return found;
  }
}

/** Whether a statement read at a place stands in spite of the revocation. */
function stands(revocation: Revocation, found: LogPlace | null): boolean {
  const { place, time } = revocation;
  if (!place || !found) return false;
  const isBefore = found.origin === place.origin ? found.index < place.size : isEarlierShard(found.origin, place.origin);
  return (
    isBefore &&
    found.witnessed.some((seen) => seen.origin === found.origin && seen.size > found.index && seen.time <= time)
  );
}

/** Whether both are shards of one log, the left an earlier half-year. */
function isEarlierShard(left: string, right: string): boolean {
  const [one, other] = [left.lastIndexOf("/"), right.lastIndexOf("/")];
  return left.slice(0, one) === right.slice(0, other) && left.slice(one) < right.slice(other);
}

function push<T>(map: Map<string, T[]>, key: string, value: T): void {
  map.set(key, [...(map.get(key) ?? []), value]);
}
