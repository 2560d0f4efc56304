/**
 * Ed25519 signatures (RFC 8032), strictly: one encoding of each point and number, no point of small order.
 *
 * WebCrypto does the work where it knows Ed25519. Platforms differ in what they refuse, so this module refuses first what
 * none may accept. Where WebCrypto is missing or does not know Ed25519 the same equation is computed here: slower, not
 * in constant time (nothing here is secret), and with the same verdicts.
 */

import { concat, hex, littleEndian, type Bytes } from "./bytes.js";
import { sha512 } from "./sha2.js";

const P = (1n << 255n) - 19n;
const L = (1n << 252n) + 27742317777372353535851937790883648493n;
const SIGN = 1n << 255n;

function mod(value: bigint): bigint {
  const rest = value % P;
  return rest < 0n ? rest + P : rest;
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  for (let square = base, rest = exponent; rest; rest >>= 1n, square = (square * square) % P) {
    if (rest & 1n) result = (result * square) % P;
  }
  return result;
}

const D = mod(-121665n * power(121666n, P - 2n));
const ROOT_OF_MINUS_1 = power(2n, (P - 1n) / 4n);

/** A point in extended coordinates: x = X/Z, y = Y/Z, T = XY/Z. */
interface Point {
  readonly x: bigint;
  readonly y: bigint;
  readonly z: bigint;
  readonly t: bigint;
}

const ZERO: Point = { x: 0n, y: 1n, z: 1n, t: 0n };

function add(p: Point, q: Point): Point {
  const a = ((p.y - p.x) * (q.y - q.x)) % P;
  const b = ((p.y + p.x) * (q.y + q.x)) % P;
  const c = (((2n * p.t * q.t) % P) * D) % P;
  const d = (2n * p.z * q.z) % P;
  const [e, f, g, h] = [b - a, d - c, d + c, b + a];
  return { x: mod(e * f), y: mod(g * h), z: mod(f * g), t: mod(e * h) };
}

function double(p: Point): Point {
  const a = (p.x * p.x) % P;
  const b = (p.y * p.y) % P;
  const c = (2n * p.z * p.z) % P;
  const e = ((p.x + p.y) * (p.x + p.y) - a - b) % P;
  const [g, h] = [b - a, -a - b];
  const f = g - c;
  return { x: mod(e * f), y: mod(g * h), z: mod(f * g), t: mod(e * h) };
}

function negative(p: Point): Point {
  return { x: mod(-p.x), y: p.y, z: p.z, t: mod(-p.t) };
}

/** The point of 32 bytes; null if they are not the one encoding of a point of the curve. */
function decode(bytes: Uint8Array): Point | null {
  const whole = littleEndian(bytes);
  const y = whole & (SIGN - 1n);
  if (y >= P) return null;
  const u = mod(y * y - 1n);
  const v = mod(D * y * y + 1n);
  const v3 = (v * v * v) % P;
  let x = (((u * v3) % P) * power((((u * v3) % P) * v * v * v * v) % P, (P - 5n) / 8n)) % P;
  const square = (v * x * x) % P;
  if (square !== u) {
    if (square !== mod(-u)) return null;
    x = (x * ROOT_OF_MINUS_1) % P;
  }
  const odd = (whole & SIGN) !== 0n;
  if (x === 0n && odd) return null;
  if (((x & 1n) === 1n) !== odd) x = P - x;
  return { x, y, z: 1n, t: (x * y) % P };
}

function hasSmallOrder(p: Point): boolean {
  const eightfold = double(double(double(p)));
  return eightfold.x === 0n && eightfold.y === eightfold.z;
}

/** 0, 1, 2, … 15 times a point. */
function multiples(p: Point): Point[] {
  const found = [ZERO, p];
  while (found.length < 16) found.push(add(found[found.length - 1]!, p));
  return found;
}

let base: Point[] | undefined;

/** The generator is the point whose y is 4/5 and whose x is even. */
function baseMultiples(): Point[] {
  if (!base) {
    const y = mod(4n * power(5n, P - 2n));
    const bytes = new Uint8Array(32).map((_, at) => Number((y >> BigInt(8 * at)) & 255n));
    base = multiples(decode(bytes)!);
  }
  return base;
}

/** s times the generator less h times A, as a point's 32 bytes in a number. */
function combined(s: bigint, h: bigint, a: Point): bigint {
  const ofBase = baseMultiples();
  const ofKey = multiples(negative(a));
  let sum = ZERO;
  for (let at = 252n; at >= 0n; at -= 4n) {
    if (sum !== ZERO) sum = double(double(double(double(sum))));
    const [digit, other] = [Number((s >> at) & 15n), Number((h >> at) & 15n)];
    if (digit) sum = add(sum, ofBase[digit]!);
    if (other) sum = add(sum, ofKey[other]!);
  }
  const inverse = power(sum.z, P - 2n);
  const x = (sum.x * inverse) % P;
  return ((sum.y * inverse) % P) | (x & 1n ? SIGN : 0n);
}

/** Points that were found good, by their bytes. Keys come again and again; of R none does. */
const goodKeys = new Map<string, Point>();
const KEYS_KEPT = 256;

function goodKey(publicKey: Uint8Array): Point | null {
  const name = hex(publicKey);
  const known = goodKeys.get(name);
  if (known) return known;
  const point = publicKey.length === 32 ? decode(publicKey) : null;
  if (!point || hasSmallOrder(point)) return null;
  if (goodKeys.size >= KEYS_KEPT) goodKeys.clear();
  goodKeys.set(name, point);
  return point;
}

/** The y of each point of small order: both signs of x have it. */
function smallOrderYs(): Set<bigint> {
  // Twice a point of order 8 has y = 0, so x^2 = -y^2, and the equation of the curve becomes d y^4 + 2 y^2 - 1 = 0.
  const part = squareRoot(mod(1n + D));
  const ys = [part - 1n, -part - 1n].flatMap((one) => {
    const y = squareRoot(mod(one * power(D, P - 2n)), true);
    return y === 0n ? [] : [y, P - y];
  });
  return new Set([0n, 1n, P - 1n, ...ys]);
}

/** A square root modulo P; 0 where `mayFail` and there is none. */
function squareRoot(value: bigint, mayFail = false): bigint {
  let candidate = power(value, (P + 3n) / 8n);
  if ((candidate * candidate) % P !== value) candidate = (candidate * ROOT_OF_MINUS_1) % P;
  if ((candidate * candidate) % P === value) return candidate;
  if (mayFail) return 0n;
  throw new RangeError("this number has no square root");
}

const SMALL_ORDER = smallOrderYs();

/** Whether key and signature are in the one form that may be accepted; of a key only once it was decoded. */
function wellFormed(publicKey: Uint8Array, signature: Uint8Array): Point | null {
  if (signature.length !== 64 || littleEndian(signature.subarray(32)) >= L) return null;
  const y = littleEndian(signature.subarray(0, 32)) & (SIGN - 1n);
  if (y >= P || SMALL_ORDER.has(y)) return null;
  return goodKey(publicKey);
}

/** The verdict computed here, without WebCrypto. */
export function verifyAlone(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const key = wellFormed(publicKey, signature);
  if (!key) return false;
  const r = signature.subarray(0, 32);
  const h = littleEndian(sha512(concat(r, publicKey, message))) % L;
  return combined(littleEndian(signature.subarray(32)), h, key) === littleEndian(r);
}

const imported = new Map<string, Promise<CryptoKey>>();
let platform: Promise<boolean> | undefined;

/** Whether WebCrypto of this platform knows Ed25519: it takes a key, and refuses what is no signature. */
export function platformKnowsEd25519(): Promise<boolean> {
  platform ??= (async () => {
    try {
      const key = await load(baseKey());
      return !(await globalThis.crypto.subtle.verify("Ed25519", key, new Uint8Array(64), new Uint8Array(1)));
    } catch {
      return false;
    }
  })();
  return platform;
}

/** The generator's own bytes are a good key to ask with. */
function baseKey(): Bytes {
  const y = mod(4n * power(5n, P - 2n));
  return new Uint8Array(32).map((_, at) => Number((y >> BigInt(8 * at)) & 255n));
}

function load(publicKey: Bytes): Promise<CryptoKey> {
  const name = hex(publicKey);
  let key = imported.get(name);
  if (!key) {
    if (imported.size >= KEYS_KEPT) imported.clear();
    key = globalThis.crypto.subtle.importKey("raw", publicKey, "Ed25519", false, ["verify"]);
    imported.set(name, key);
  }
  return key;
}

/** Whether the signature is the key's over the message. */
export async function verifySignature(publicKey: Bytes, message: Bytes, signature: Bytes): Promise<boolean> {
  if (!(await platformKnowsEd25519())) return verifyAlone(publicKey, message, signature);
  if (!wellFormed(publicKey, signature)) return false;
  return globalThis.crypto.subtle.verify("Ed25519", await load(publicKey), signature, message);
}
