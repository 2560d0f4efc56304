/** The shapes of statements (docs/schemas): exactly the keys of a shape, each of its form. */

import { has, isList, type Json, type JsonObject, type Shape } from "./json.js";
import { SHAPES } from "./data/shapes.js";

const PATTERNS = new Map<string, RegExp>();
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

function matches(pattern: string, value: string): boolean {
  let compiled = PATTERNS.get(pattern);
  if (!compiled) {
    compiled = new RegExp(`^(?:${pattern})$`);
    PATTERNS.set(pattern, compiled);
  }
  return compiled.test(value);
}

/** What is wrong with a value, "" if nothing is. */
function fault(value: Json | undefined, shape: Shape, place: string): string {
  if (value === undefined) return `${place} is missing`;
  if (shape === true) return typeof value === "boolean" ? "" : `${place} is not true or false`;
  if (typeof shape === "string") {
    if (typeof value !== "string" || !matches(shape, value)) return `${place} is not of its form (${shape.slice(0, 80)})`;
    return TIME.test(value) && milliseconds(value) === null ? `${place} is ${value}, a time that does not exist` : "";
  }
  if (isShapeOfList(shape)) {
    if (typeof value !== "object" || !isList(value)) return `${place} is not a list`;
    if (value.length > shape[1]) return `${place} has ${value.length} items, at most ${shape[1]} are allowed`;
    return value.reduce<string>((found, one, at) => found || fault(one, shape[0], `${place}[${at}]`), "");
  }
  if (typeof value !== "object" || isList(value)) return `${place} is not an object`;
  return objectFault(value, shape, place);
}

function isShapeOfList(shape: Shape): shape is readonly [Shape, number] {
  return Array.isArray(shape);
}

function objectFault(value: JsonObject, shape: { readonly [key: string]: Shape }, place: string): string {
  let known = 0;
  for (const [name, inner] of Object.entries(shape)) {
    const key = name.endsWith("?") ? name.slice(0, -1) : name;
    if (key !== name && !has(value, key)) continue;
    const found = fault(value[key], inner, place ? `${place}.${key}` : key);
    if (found) return found;
    known += 1;
  }
  return Object.keys(value).length === known ? "" : `${place || "the statement"} has a key that its kind does not have`;
}

/** What is wrong with a document of a kind; "" if it has the kind's shape. */
export function shapeFault(kind: string, document: JsonObject): string {
  const shape = SHAPES[kind];
  if (!shape) return `the kind ${kind} has no shape`;
  return fault(document, shape, "");
}

/** Milliseconds since 1970 of a time as statements write it; null if there is no such time. */
export function milliseconds(time: string): number | null {
  const value = Date.parse(time);
  if (Number.isNaN(value) || value < 0 || new Date(value).toISOString() !== time) return null;
  return value;
}
