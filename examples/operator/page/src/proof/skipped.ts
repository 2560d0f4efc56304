/** Why the verifier has skipped a step: its sentence as a key of the page's words. */

import type { Step } from "./protocol.js";

const REASONS = {
  "no proof is given that the log holds the statements": "skipped.log_none",
  "no policy says whom to trust about the log": "skipped.log_policy",
  "no proof is given that the log holds ": "skipped.log_partly",
  "what the campaign paid is not shown": "skipped.free_bet_debit",
  "what went back to the campaign is not shown": "skipped.free_bet_credit",
} as const;

/** The key, or undefined for a step that was not skipped, or for a reason that the page does not know. */
export function skippedKey({ verdict, message }: Step): (typeof REASONS)[keyof typeof REASONS] | undefined {
  if (verdict !== "skipped") return undefined;
  return Object.entries(REASONS).find(([beginning]) => message.startsWith(beginning))?.[1];
}
