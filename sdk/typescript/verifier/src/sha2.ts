/**
 * SHA-256 and SHA-512 (FIPS 180-4), without waiting and without a platform's help.
 *
 * WebCrypto hashes only asynchronously, and not at all in a page that is not served securely. The constants are computed
 * as the standard defines them: the first bits of the fractions of square and cube roots of primes.
 */

import { concat, hex, utf8, type Bytes } from "./bytes.js";

function primes(count: number): bigint[] {
  const found: bigint[] = [];
  for (let one = 2n; found.length < count; one += 1n) if (found.every((prime) => one % prime)) found.push(one);
  return found;
}

/** The whole part of a root of `value`. */
function root(value: bigint, degree: bigint): bigint {
  let low = 0n;
  let high = 1n << 80n;
  while (low < high - 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** degree <= value) low = middle;
    else high = middle;
  }
  return low;
}

const MASK64 = (1n << 64n) - 1n;
const CUBE_ROOTS = primes(80).map((prime) => root(prime << 192n, 3n) & MASK64);
const SQUARE_ROOTS = primes(8).map((prime) => root(prime << 128n, 2n) & MASK64);

function words(values: readonly bigint[]): Int32Array {
  return Int32Array.from(values.flatMap((value) => [Number(value >> 32n), Number(value & 0xffffffffn)]));
}

const K512 = words(CUBE_ROOTS);
const H512 = words(SQUARE_ROOTS);
const K256 = Int32Array.from(CUBE_ROOTS.slice(0, 64), (value) => Number(value >> 32n));
const H256 = Int32Array.from(SQUARE_ROOTS, (value) => Number(value >> 32n));

/** The message with its padding: 1 bit, zeros, the length in bits in the last 8 bytes. */
function padded(message: Uint8Array, block: number, lengthBytes: number): DataView {
  const whole = new Uint8Array(Math.ceil((message.length + 1 + lengthBytes) / block) * block);
  whole.set(message);
  whole[message.length] = 0x80;
  const view = new DataView(whole.buffer);
  view.setUint32(whole.length - 8, Math.floor(message.length / 0x20000000));
  view.setUint32(whole.length - 4, (message.length * 8) >>> 0);
  return view;
}

function bigEndian(state: Int32Array): Bytes {
  const view = new DataView(new ArrayBuffer(state.length * 4));
  state.forEach((word, at) => view.setInt32(4 * at, word));
  return new Uint8Array(view.buffer);
}

const W256 = new Int32Array(64);

export function sha256(...parts: readonly Uint8Array[]): Bytes {
  const view = padded(concat(...parts), 64, 8);
  const state = H256.slice();
  const w = W256;
  for (let from = 0; from < view.byteLength; from += 64) {
    for (let t = 0; t < 16; t += 1) w[t] = view.getInt32(from + 4 * t);
    for (let t = 16; t < 64; t += 1) {
      const x = w[t - 15]!;
      const y = w[t - 2]!;
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[t] = (w[t - 16]! + s0 + w[t - 7]! + s1) | 0;
    }
    let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
    for (let t = 0; t < 64; t += 1) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K256[t]! + w[t]!) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((word, at) => (state[at] = (state[at]! + word) | 0));
  }
  return bigEndian(state);
}

export function sha256Hex(...parts: readonly Uint8Array[]): string {
  return hex(sha256(...parts));
}

/** SHA-512 on pairs of 32-bit words: high, low. Ed25519 needs it where a platform has none. */
export function sha512(...parts: readonly Uint8Array[]): Bytes {
  const view = padded(concat(...parts), 128, 16);
  const state = H512.slice();
  const w = new Int32Array(160);
  for (let from = 0; from < view.byteLength; from += 128) {
    for (let t = 0; t < 32; t += 1) w[t] = view.getInt32(from + 4 * t);
    for (let t = 32; t < 160; t += 2) {
      const [xh, xl, yh, yl] = [w[t - 30]!, w[t - 29]!, w[t - 4]!, w[t - 3]!];
      const s0h = (right(xh, xl, 1)) ^ right(xh, xl, 8) ^ (xh >>> 7);
      const s0l = right(xl, xh, 1) ^ right(xl, xh, 8) ^ ((xl >>> 7) | (xh << 25));
      const s1h = right(yh, yl, 19) ^ left(yh, yl, 3) ^ (yh >>> 6);
      const s1l = right(yl, yh, 19) ^ left(yl, yh, 3) ^ ((yl >>> 6) | (yh << 26));
      const low = (w[t - 31]! >>> 0) + (s0l >>> 0) + (w[t - 13]! >>> 0) + (s1l >>> 0);
      w[t] = (w[t - 32]! + s0h + w[t - 14]! + s1h + Math.floor(low / 0x100000000)) | 0;
      w[t + 1] = low | 0;
    }
    rounds(state, w);
  }
  return bigEndian(state);
}

/** The high word of (high, low) turned right by `by` < 32; with the words exchanged the low one. */
function right(high: number, low: number, by: number): number {
  return (high >>> by) | (low << (32 - by));
}

/** The high word of (high, low) turned left by `by` < 32, which is right by 64 - `by`. */
function left(high: number, low: number, by: number): number {
  return (high << by) | (low >>> (32 - by));
}

function rounds(state: Int32Array, w: Int32Array): void {
  const v = state.slice();
  for (let t = 0; t < 160; t += 2) {
    const [ah, al, eh, el] = [v[0]!, v[1]!, v[8]!, v[9]!];
    const s1h = right(eh, el, 14) ^ right(eh, el, 18) ^ left(eh, el, 23);
    const s1l = right(el, eh, 14) ^ right(el, eh, 18) ^ left(el, eh, 23);
    const chh = (eh & v[10]!) ^ (~eh & v[12]!);
    const chl = (el & v[11]!) ^ (~el & v[13]!);
    const low1 = (v[15]! >>> 0) + (s1l >>> 0) + (chl >>> 0) + (K512[t + 1]! >>> 0) + (w[t + 1]! >>> 0);
    const high1 = (v[14]! + s1h + chh + K512[t]! + w[t]! + Math.floor(low1 / 0x100000000)) | 0;
    const s0h = right(ah, al, 28) ^ left(ah, al, 30) ^ left(ah, al, 25);
    const s0l = right(al, ah, 28) ^ left(al, ah, 30) ^ left(al, ah, 25);
    const majh = (ah & v[2]!) ^ (ah & v[4]!) ^ (v[2]! & v[4]!);
    const majl = (al & v[3]!) ^ (al & v[5]!) ^ (v[3]! & v[5]!);
    const low2 = (s0l >>> 0) + (majl >>> 0) + ((low1 | 0) >>> 0);
    const high2 = (s0h + majh + high1 + Math.floor(low2 / 0x100000000)) | 0;
    const lowE = (v[7]! >>> 0) + ((low1 | 0) >>> 0);
    const highE = (v[6]! + high1 + Math.floor(lowE / 0x100000000)) | 0;
    v.copyWithin(2, 0, 14);
    v[0] = high2;
    v[1] = low2 | 0;
    v[8] = highE;
    v[9] = lowE | 0;
  }
  for (let at = 0; at < 16; at += 2) {
    const low = (state[at + 1]! >>> 0) + (v[at + 1]! >>> 0);
    state[at] = (state[at]! + v[at]! + Math.floor(low / 0x100000000)) | 0;
    state[at + 1] = low | 0;
  }
}

/** SHA-256 of a domain, a zero byte and the parts: the tagged hashes of docs/formats.md 8 to 11. */
export function tagged(domain: string, ...parts: readonly Uint8Array[]): Bytes {
  return sha256(utf8(`${domain}\0`), ...parts);
}

