/** A dispute: the whole session replayed, and its round step by step. */

import { verifyExport, verifyRound } from "../../../../../sdk/typescript/verifier/src/index.js";
import { answerOf, NoReceipt, optionsOf } from "../proof/receipt.js";
import type { Answer, Trust } from "../proof/protocol.js";
import { unzip } from "./zip.js";

/** Kinds that stand in a session, and belong to no round. */
const BESIDE = ["purchase", "participation-end", "session-close", "export-scope", "instance-end", "instance-lost", "draw-window"];

export async function verifyDispute(file: Uint8Array<ArrayBuffer>, trust: Trust): Promise<Omit<Answer, "number">> {
  const files = await unzip(file);
  const need = (name: string): Uint8Array<ArrayBuffer> => {
    const content = files.get(name);
    if (!content) throw new NoReceipt(`the zip has no ${name}: it is no dispute`);
    return content;
  };
  const [session, keys, opening] = [need("session.jsonl"), need("keys.json"), need("opening.json")];
  const proofs = [...files].filter(([name]) => name.endsWith(".tlog-proof")).map(([, content]) => new TextDecoder().decode(content));
  const options = optionsOf(trust);
  const began = performance.now();
  const whole = await verifyExport(session, keys, trust.root ? { root: trust.root } : {});
  const lines = new TextDecoder().decode(session).split("\n").filter((line) => line && !BESIDE.some((kind) => isOf(line, kind)));
  const report = await verifyRound({ keys, statements: lines, roundId: roundOf(opening), proofs }, options);
  const answer = answerOf(report, performance.now() - began);
  const [failure] = whole.failures;
  if (!failure || answer.check !== undefined) return answer;
  return { ...answer, passed: false, incomplete: false, check: `${failure.check} (${failure.name})`, message: failure.message };
}

function isOf(line: string, kind: string): boolean {
  const envelope = (JSON.parse(line) as { envelope?: { payloadType?: string } }).envelope;
  return envelope?.payloadType?.startsWith(`application/vnd.rgs.${kind}.`) ?? false;
}

function roundOf(opening: Uint8Array): string {
  const envelope = JSON.parse(new TextDecoder().decode(opening)) as { payload?: string };
  const body = JSON.parse(atob(envelope.payload ?? "")) as { round_id?: string; deal?: { round_id?: string } };
  return body.deal?.round_id ?? body.round_id ?? "";
}
