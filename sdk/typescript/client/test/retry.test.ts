/** The pause before a repeat: growing, by chance, at least what the server asks for, and bounded. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { errorOf } from "../src/errors.js";
import { Code, DEFAULT_POLICY } from "../src/index.js";
import { pauseBefore } from "../src/retry.js";
import { refusal } from "./refusal.js";

const POLICY = { ...DEFAULT_POLICY, attempts: 4, firstPauseMs: 100, maxPauseMs: 1000 };

function pauses(attempt: number, retryMs?: number): number[] {
  const error = errorOf(refusal(Code.UNAVAILABLE, "UNAVAILABLE", retryMs));
  return Array.from({ length: 200 }, () => pauseBefore(attempt, error, POLICY) ?? Number.NaN);
}

test("pauses double, and differ by chance between half and all", () => {
  for (const [attempt, most] of [[2, 100], [3, 200], [4, 400]] as const) {
    const found = pauses(attempt);
    assert.ok(Math.min(...found) >= most / 2 && Math.max(...found) <= most, `${attempt}`);
    assert.ok(new Set(found).size > 100);
  }
});

test("a server that asks for a pause gets at least that", () => {
  const found = pauses(2, 500);
  assert.ok(Math.min(...found) >= 500 && Math.max(...found) <= 1000);
  assert.ok(new Set(found).size > 100);
});

test("attempts and pauses are bounded, and a refusal is not repeated", () => {
  assert.ok(pauses(5).every(Number.isNaN));
  assert.ok(pauses(2, 1001).every(Number.isNaN));
  assert.equal(pauseBefore(2, errorOf(refusal(Code.INVALID_ARGUMENT, "INVALID_FIELD")), POLICY), undefined);
});
