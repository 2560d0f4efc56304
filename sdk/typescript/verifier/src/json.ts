/** Canonical JSON (docs/formats.md 1): one byte form a value, and nothing but objects, arrays, strings and booleans. */

export type Json = string | boolean | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

/** The form of a value: a pattern of a string, `true` for a boolean, [items, most], or an object whose optional keys end with `?`. */
export type Shape = string | true | readonly [Shape, number] | { readonly [key: string]: Shape };

export const PAYLOAD_BYTES_MAX = 32768;
const DEPTH_MAX = 32;

export class JsonError extends Error {}

class Reader {
  at = 0;

  constructor(readonly text: string) {}

  value(depth: number): Json {
    if (depth > DEPTH_MAX) throw this.fault(`values are nested deeper than ${DEPTH_MAX}`);
    const first = this.text.charAt(this.at);
    if (first === '"') return this.string();
    if (first === "{") return this.object(depth);
    if (first === "[") return this.array(depth);
    if (this.text.startsWith("true", this.at)) return this.skip(4, true);
    if (this.text.startsWith("false", this.at)) return this.skip(5, false);
    throw this.fault("an object, an array, a string, true or false is expected");
  }

  /** A string of the characters that statements have: none of them needs an escape. */
  private string(): string {
    const end = this.text.indexOf('"', this.at + 1);
    if (end < 0) throw this.fault("a string does not end");
    const found = this.text.slice(this.at + 1, end);
    if (!/^[ !#-[\]-~]*$/.test(found)) throw this.fault("a string has an escape or a character that no field has");
    this.at = end + 1;
    return found;
  }

  private object(depth: number): JsonObject {
    const found: Record<string, Json> = Object.create(null) as Record<string, Json>;
    this.at += 1;
    if (this.text.charAt(this.at) === "}") return this.skip(1, found);
    for (let last: string | null = null; ; ) {
      if (this.text.charAt(this.at) !== '"') throw this.fault("a key is expected");
      const key = this.string();
      if (last !== null && key <= last) throw this.fault(`the key ${key} is not behind ${last} in the order of keys`);
      this.expect(":");
      found[key] = this.value(depth + 1);
      last = key;
      if (this.text.charAt(this.at) === "}") return this.skip(1, found);
      this.expect(",");
    }
  }

  private array(depth: number): readonly Json[] {
    const found: Json[] = [];
    this.at += 1;
    if (this.text.charAt(this.at) === "]") return this.skip(1, found);
    for (;;) {
      found.push(this.value(depth + 1));
      if (this.text.charAt(this.at) === "]") return this.skip(1, found);
      this.expect(",");
    }
  }

  private expect(character: string): void {
    if (this.text.charAt(this.at) !== character) throw this.fault(`${character} is expected`);
    this.at += 1;
  }

  private skip<T>(length: number, value: T): T {
    this.at += length;
    return value;
  }

  fault(what: string): JsonError {
    return new JsonError(`${what}, at character ${this.at + 1}`);
  }
}

/** The value of a canonical document, an object. JsonError names the first fault. */
export function parseCanonical(text: string): JsonObject {
  if (text.length > PAYLOAD_BYTES_MAX) throw new JsonError(`${text.length} bytes are above ${PAYLOAD_BYTES_MAX}`);
  const reader = new Reader(text);
  if (text.charAt(0) !== "{") throw reader.fault("an object is expected");
  const value = reader.value(0) as JsonObject;
  if (reader.at !== text.length) throw reader.fault("something follows the document");
  return value;
}

/** The one form of a value that was parsed. */
export function formatCanonical(value: Json): string {
  if (typeof value === "boolean") return String(value);
  if (typeof value === "string") return `"${value}"`;
  if (isList(value)) return `[${value.map(formatCanonical).join(",")}]`;
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `"${key}":${formatCanonical(value[key]!)}`).join(",")}}`;
}

export function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

// --- fields of a document whose schema was checked ---

export function has(object: JsonObject, key: string): boolean {
  return object[key] !== undefined;
}

export function text(object: JsonObject, key: string): string {
  const value = object[key];
  if (typeof value !== "string") throw new TypeError(`${key} is no text`);
  return value;
}

/** An optional text: "" where it is absent. */
export function textOr(object: JsonObject, key: string): string {
  return has(object, key) ? text(object, key) : "";
}

export function whole(object: JsonObject, key: string): bigint {
  return BigInt(text(object, key));
}

export function objectAt(object: JsonObject, key: string): JsonObject {
  const value = object[key];
  if (value === undefined || typeof value !== "object" || isList(value)) throw new TypeError(`${key} is no object`);
  return value;
}

export function listAt(object: JsonObject, key: string): readonly Json[] {
  const value = object[key];
  if (value === undefined || typeof value !== "object" || !isList(value)) throw new TypeError(`${key} is no list`);
  return value;
}

export function objectsAt(object: JsonObject, key: string): readonly JsonObject[] {
  return listAt(object, key) as readonly JsonObject[];
}

export function textsAt(object: JsonObject, key: string): readonly string[] {
  return listAt(object, key) as readonly string[];
}

/** Whether two values, or their absence, are the same. */
export function equal(left: Json | undefined, right: Json | undefined): boolean {
  if (left === undefined || right === undefined) return left === right;
  return formatCanonical(left) === formatCanonical(right);
}
