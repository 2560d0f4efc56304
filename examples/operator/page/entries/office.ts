/**
 * The verdict on a round in the back office: this browser verifies the receipt with the modules that verify it for the
 * player. What the office shows of the round is compared with what was signed.
 */

import type { Answer, Step } from "../src/proof/protocol.js";
import { verifyReceipt } from "../src/proof/receipt.js";
import { differences } from "../src/proof/shown.js";
import { skippedKey } from "../src/proof/skipped.js";
import en, { type Key } from "../src/words/en.js";

const MARKS: Record<Step["verdict"], string> = { ok: "✓", failed: "✗", unpinned: "?", skipped: "–" };
const ANCHORED = "The keys lead to the root that this platform was set up with.";
const UNANCHORED = "This platform was set up without a root: nobody has confirmed the one that signed, ";

function make(name: string, properties: Record<string, string>, ...children: (Node | string)[]): HTMLElement {
  const element = document.createElement(name);
  for (const [property, value] of Object.entries(properties)) element.setAttribute(property, value);
  element.append(...children);
  return element;
}

function verdict(state: "passed" | "failed" | "open" | "refused", ...text: string[]): HTMLElement[] {
  const [first = "", ...others] = text;
  return [make("p", { class: `verdict ${state}`, "data-verdict": state }, first), ...others.map((one) => make("p", {}, make("code", {}, one)))];
}

function resultOf(answer: Omit<Answer, "number">, differing: string[]): HTMLElement[] {
  const { check = "", message = "" } = answer;
  if (answer.refused) return verdict("refused", "A statement is of a kind that this verifier does not know: it says nothing about the round.", message);
  if (answer.incomplete) return verdict("open", "Nothing is refuted, and the end of the round is not there yet.");
  if (!answer.passed) return verdict("failed", `✗ ${en["proof.failed"]} ${en["proof.failed_check"].replace("{check}", check)}`, message);
  if (differing.length) return verdict("failed", "✗ The statements verify, but this page shows something else than was signed.", ...differing);
  return verdict("passed", `✓ ${en["proof.passed"]}`);
}

function stepOf(step: Step): HTMLElement {
  const key = `step.${step.name}`;
  const why = skippedKey(step);
  const message = why ? en[why] : step.message;
  const looked = Object.entries(step.looked).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, make("code", {}, value))]);
  const summary = make("summary", {}, `${MARKS[step.verdict]} ${key in en ? en[key as Key] : step.name}`);
  return make("details", { "data-step": step.name }, summary, ...(message ? [make("p", {}, message)] : []), make("dl", {}, ...looked));
}

async function show(place: HTMLElement): Promise<void> {
  const { receipt = "", root = "", shown = "" } = place.dataset;
  const answered = await fetch(receipt);
  if (!answered.ok) throw new Error(`the platform has answered ${answered.status} instead of the receipt`);
  const document = await answered.text();
  const answer = await verifyReceipt(document, { root, policy: "" });
  const found = resultOf(answer, answer.passed ? differences(document, shown) : []);
  if (!answer.refused) found.push(make("p", {}, answer.anchored ? ANCHORED : `${UNANCHORED}${answer.root ?? "unknown"}.`));
  if (answer.demo) found.push(make("p", {}, en["proof.demo"]));
  if (answer.development) found.push(make("p", {}, en["proof.development"]));
  place.replaceChildren(...found, ...answer.steps.map(stepOf));
}

for (const place of document.querySelectorAll<HTMLElement>("[data-receipt]")) {
  void show(place).catch((error: unknown) => {
    place.replaceChildren(...verdict("refused", "Nothing was verified.", error instanceof Error ? error.message : String(error)));
  });
}
