/** Bytes, hex and base64, each in exactly one form. */

export type Bytes = Uint8Array<ArrayBuffer>;

const ENCODER = new TextEncoder();
const HEX = /^(?:[0-9a-f]{2})*$/;
const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const DIGITS = new Map([...BASE64].map((digit, value) => [digit, value]));

export function utf8(text: string): Bytes {
  return ENCODER.encode(text) as Bytes;
}

/** The bytes as a text, or null if one of them is not ASCII. */
export function ascii(bytes: Uint8Array): string | null {
  for (const byte of bytes) if (byte > 127) return null;
  return latin1(bytes);
}

/** The bytes as a text of one character a byte. */
export function latin1(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
}

export function hex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += (byte < 16 ? "0" : "") + byte.toString(16);
  return text;
}

/** The bytes of lowercase hex. The caller has checked the form. */
export function unhex(text: string): Bytes {
  if (!HEX.test(text)) throw new TypeError(`not lowercase hex of whole bytes: ${text.slice(0, 80)}`);
  const bytes = new Uint8Array(text.length / 2);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = parseInt(text.slice(2 * at, 2 * at + 2), 16);
  return bytes;
}

export function concat(...parts: readonly Uint8Array[]): Bytes {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export function same(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, at) => byte === right[at]);
}

/** Standard base64 with padding and zero bits behind the last digit; null for any other text. */
export function unbase64(text: string): Bytes | null {
  if (text.length % 4) return null;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const digits = text.length - padding;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  let bits = 0;
  let held = 0;
  let at = 0;
  for (let place = 0; place < digits; place += 1) {
    const digit = DIGITS.get(text.charAt(place));
    if (digit === undefined) return null;
    bits = ((bits << 6) | digit) & 0xffffff;
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes[at] = (bits >> held) & 255;
      at += 1;
    }
  }
  return bits & ((1 << held) - 1) ? null : bytes;
}

export function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 3) {
    const rest = bytes.length - at;
    const bits = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    text += BASE64.charAt(bits >> 18) + BASE64.charAt((bits >> 12) & 63);
    text += (rest > 1 ? BASE64.charAt((bits >> 6) & 63) : "=") + (rest > 2 ? BASE64.charAt(bits & 63) : "=");
  }
  return text;
}

/** The number that these bytes are, the first byte the lowest. */
export function littleEndian(bytes: Uint8Array): bigint {
  let value = 0n;
  for (let at = bytes.length - 1; at >= 0; at -= 1) value = (value << 8n) | BigInt(bytes[at] ?? 0);
  return value;
}
