/** Repeats: the same request under the same request id, a bounded number of times, with growing pauses and jitter. */
import { isRepeatable, type RgsError } from "./errors.js";

export interface RetryPolicy {
  /** Attempts in all, the first one included. */
  readonly attempts: number;
  /** The pause before the second attempt; each later one is twice as long. */
  readonly firstPauseMs: number;
  /** No pause is longer. A server that asks for a longer one ends the repeats. */
  readonly maxPauseMs: number;
  /** The deadline of one attempt. */
  readonly timeoutMs: number;
}

export const DEFAULT_POLICY: RetryPolicy = { attempts: 6, firstPauseMs: 100, maxPauseMs: 3000, timeoutMs: 10_000 };

/**
 * The pause before the next attempt: at least what the server asks for, and between half and all of the growing pause,
 * by chance. undefined if the request must not be repeated (any more).
 */
export function pauseBefore(attempt: number, error: RgsError, policy: RetryPolicy): number | undefined {
  const asked = error.retryAfterMs ?? 0;
  if (!isRepeatable(error) || attempt > policy.attempts || asked > policy.maxPauseMs) return undefined;
  const growing = Math.min(policy.firstPauseMs * 2 ** (attempt - 2), policy.maxPauseMs);
  const chance = 0.5 + Math.random() / 2;
  return Math.min(Math.max(asked, growing) * (asked > growing ? 1 + (chance - 0.5) / 4 : chance), policy.maxPauseMs);
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
