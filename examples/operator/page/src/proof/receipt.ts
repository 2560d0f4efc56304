/** A receipt or a dispute of one round, from the file to what the verifier takes. It refuses what it does not know. */

import { parseSavedReceipt, SavedFileError, verifyRound, type RoundInput, type RoundReport } from "../../../../../sdk/typescript/verifier/src/index.js";
import type { Answer, Step, Trust } from "./protocol.js";

/** A file that is no receipt; the message says what it is instead. */
export class NoReceipt extends Error {}

/** Verifies the receipt against what the player trusts. */
export async function verifyReceipt(document: string, trust: Trust): Promise<Omit<Answer, "number">> {
  const input = parse(document);
  const began = performance.now();
  const report = await verifyRound(input, optionsOf(trust));
  return answerOf(report, performance.now() - began);
}

export function optionsOf({ root, policy }: Trust): { root?: string; policy?: string } {
  return { ...(root ? { root } : {}), ...(policy ? { policy } : {}) };
}

function parse(document: string): RoundInput {
  try {
    return parseSavedReceipt(document);
  } catch (error) {
    if (error instanceof SavedFileError) throw new NoReceipt(error.message);
    throw error;
  }
}

export function answerOf(report: RoundReport, took: number): Omit<Answer, "number"> {
  const steps: Step[] = report.steps.map(({ step, verdict, looked, message }) => ({ name: step, verdict, looked, message }));
  const wrong = report.steps.find((step) => step.verdict === "failed");
  return {
    passed: report.verdict === "verified",
    incomplete: report.verdict === "open",
    refused: report.verdict === "refused",
    anchored: report.isAnchored,
    development: report.isDevelopment,
    ...(report.isDemo === null ? {} : { demo: report.isDemo }),
    root: report.root,
    round: report.roundId,
    steps,
    took,
    ...(wrong ? { check: wrong.check === null ? wrong.step : `${wrong.check} (${wrong.step})`, message: wrong.message } : {}),
  };
}

/** The payload of an envelope of a receipt that was read, as the signed JSON: to compare with what the page has shown. */
export function payloadOf(document: string, part: "opening" | "final" | "table_final"): Record<string, unknown> {
  const { record } = JSON.parse(document) as { record: Record<string, string | undefined> };
  const envelope = record[part];
  if (!envelope) return {};
  const { payload } = JSON.parse(atob(envelope)) as { payload: string };
  return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(payload), (char) => char.charCodeAt(0)))) as Record<string, unknown>;
}
