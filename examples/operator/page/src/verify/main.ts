/** The page that verifies a receipt or a dispute, from a disk or from anybody's server. It sends nothing anywhere. */

import type { Answer, Step } from "../proof/protocol.js";
import { verifyReceipt } from "../proof/receipt.js";
import { skippedKey } from "../proof/skipped.js";
import { titleKey } from "../proof/titles.js";
import de from "../words/de.js";
import en, { type Key } from "../words/en.js";
import it from "../words/it.js";
import "./verify.css";
import { verifyDispute } from "./dispute.js";
import { make } from "./make.js";
import { scanField } from "./scan.js";
import { own, type OwnKey } from "./words.js";
import { isZip } from "./zip.js";

const WORDS: Record<string, Record<Key, string>> = { en, it, de };
const NAMES: Record<string, string> = { it: "Italiano", de: "Deutsch", en: "English" };
const MARKS: Record<Step["verdict"], string> = { ok: "✓", failed: "✗", unpinned: "?", skipped: "–" };
const FILE_BYTES_MAX = 16 * 1024 * 1024;

let language = ["it", "de", "en"].find((each) => navigator.language.startsWith(each)) ?? "en";
let root = "";
let policy = "";
let isLogOpen = false;
let file: Uint8Array<ArrayBuffer> | undefined;
let answer: Omit<Answer, "number"> | undefined;
let refused = "";

function word(key: OwnKey): string {
  return own[language]?.[key] ?? own["en"]?.[key] ?? key;
}

function shared(key: Key, values: Record<string, string> = {}): string {
  return (WORDS[language] ?? en)[key].replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}


function draw(): void {
  document.documentElement.lang = language;
  document.title = word("title");
  const page = document.getElementById("page");
  const focused = document.activeElement?.id;
  page?.replaceChildren(
    make("h1", {}, word("title")),
    make("p", {}, word("intro")),
    languageField(),
    rootField(),
    scanField({ word, make, take: (found) => takeRoot(found) }),
    policyField(),
    fileField(),
    make("div", { role: "status", id: "result" }, ...result()),
  );
  if (focused) document.getElementById(focused)?.focus();
}

function languageField(): HTMLElement {
  const select = make("select", { id: "language" }) as HTMLSelectElement;
  for (const [code, name] of Object.entries(NAMES)) {
    const option = make("option", { value: code, lang: code }, name) as HTMLOptionElement;
    option.selected = code === language;
    select.append(option);
  }
  select.addEventListener("change", () => {
    language = select.value;
    draw();
  });
  return make("label", { for: "language" }, shared("settings.language"), select);
}

function rootField(): HTMLElement {
  const input = make("input", { id: "root", name: "root", autocomplete: "off", spellcheck: "false" }) as HTMLInputElement;
  input.value = root;
  input.addEventListener("change", () => {
    root = input.value.replace(/[\s:]/g, "").toLowerCase();
    void verify();
  });
  return make("label", { for: "root" }, shared("proof.root"), input, make("span", { class: "muted" }, word("root_help")));
}

function takeRoot(found: string): void {
  root = found;
  draw();
  void verify();
}

function policyField(): HTMLElement {
  const input = make("textarea", { id: "policy", name: "policy", rows: "4", autocomplete: "off", spellcheck: "false" }) as HTMLTextAreaElement;
  input.value = policy;
  input.addEventListener("change", () => {
    policy = input.value.trim() ? input.value : "";
    void verify();
  });
  const label = make("label", { for: "policy" }, word("policy"), input, make("span", { class: "muted" }, word("policy_help")));
  const about = make("details", isLogOpen ? { open: "" } : {}, make("summary", {}, word("log")), label) as HTMLDetailsElement;
  about.addEventListener("toggle", () => (isLogOpen = about.open));
  return about;
}

/** Made once: it goes on saying which file was chosen. A file that has changed can be chosen again: a browser tells of no
 * change where the name is the same, so the choice of before goes with the click.
 */
const fileInput = make("input", { id: "file", type: "file", accept: ".json,.zip" }) as HTMLInputElement;
fileInput.addEventListener("click", () => {
  fileInput.value = "";
});
fileInput.addEventListener("change", () => void take(fileInput.files?.[0]));
fileInput.addEventListener("cancel", () => void take(undefined));

function fileField(): HTMLElement {
  return make("label", { for: "file" }, word("file"), fileInput);
}

async function take(chosen: File | undefined): Promise<void> {
  file = undefined;
  answer = undefined; // nobody may take the verdict of the file before for this one's
  refused = "";
  draw();
  if (!chosen) return;
  if (chosen.size > FILE_BYTES_MAX) {
    refused = word("too_large");
    draw();
    return;
  }
  file = new Uint8Array(await chosen.arrayBuffer());
  await verify();
}

async function verify(): Promise<void> {
  if (!file) return;
  answer = undefined;
  refused = "";
  draw();
  if (root && !/^[0-9a-f]{64}$/.test(root)) {
    refused = shared("proof.root_wrong", { count: String(root.length) });
    draw();
    return;
  }
  try {
    const trust = { root, policy };
    answer = isZip(file) ? await verifyDispute(file, trust) : await verifyReceipt(new TextDecoder().decode(file), trust);
  } catch (error) {
    refused = `${word("no_receipt")} ${error instanceof Error ? error.message : String(error)}`;
  }
  draw();
}

function result(): HTMLElement[] {
  if (refused) return [make("p", { class: "verdict warned", "data-verdict": "refused" }, refused)];
  if (!answer) return [];
  const { check = "", message = "" } = answer;
  const found: HTMLElement[] = [];
  if (answer.refused) {
    found.push(make("p", { class: "verdict warned", "data-verdict": "refused" }, word("unknown_kind")), make("p", {}, make("code", {}, message)));
  } else if (answer.passed) {
    found.push(make("p", { class: "verdict passed", "data-verdict": "passed" }, `✓ ${shared("proof.passed")}`));
  } else if (answer.incomplete) {
    found.push(make("p", { class: "verdict warned", "data-verdict": "open" }, word("open")));
  } else {
    found.push(
      make("p", { class: "verdict failed", "data-verdict": "failed" }, `✗ ${shared("proof.failed")}`),
      make("p", {}, `${shared("proof.failed_check", { check })} `, make("code", {}, message)),
    );
  }
  if (!answer.refused) found.push(make("p", answer.anchored ? {} : { class: "verdict warned", "data-unanchored": "" }, rootWords(answer)));
  if (!answer.refused) found.push(logWords(answer.steps));
  if (answer.demo) found.push(make("p", { "data-demo": "" }, shared("proof.demo")));
  if (answer.development) found.push(make("p", { class: "muted" }, shared("proof.development")));
  if (answer.round) found.push(make("p", {}, `${shared("history.round")} `, make("code", {}, answer.round)));
  return [...found, ...answer.steps.map(stepOf)];
}

function rootWords(shown: Omit<Answer, "number">): string {
  return shown.anchored ? word("anchored") : `${word("unanchored")} ${shown.root ?? ""}`;
}

/** What is known about the log, in one sentence; the step has the numbers. */
function logWords(steps: readonly Step[]): HTMLElement {
  const step = steps.find(({ name }) => name === "log");
  const state = !step ? "none" : step.verdict === "skipped" ? unpinnedOrNone(step) : step.verdict === "ok" && step.looked["witnessed"] === "SELF-WITNESSED" ? "self" : step.verdict;
  const keys: Record<string, OwnKey> = { none: "log_none", ok: "log_ok", self: "log_self", unpinned: "log_unpinned", failed: "log_failed" };
  return make("p", { "data-log": state }, word(keys[state] ?? "log_none"));
}

/** Without a policy the place in the log is recomputed, and nobody stands for the checkpoint. */
function unpinnedOrNone(step: Step): string {
  return step.looked["checkpoint"] && !policy ? "unpinned" : "none";
}

function stepOf(step: Step): HTMLElement {
  const key = titleKey(step);
  const name = key in en ? shared(key as Key) : step.name;
  const list = make("dl", {});
  for (const [label, value] of Object.entries(step.looked)) {
    list.append(make("dt", {}, label), make("dd", {}, make("code", {}, value)));
  }
  const why = skippedKey(step);
  const inside: (Node | string)[] = why ? [make("p", {}, shared(why)), list] : step.message ? [make("p", {}, make("code", {}, step.message)), list] : [list];
  return make("details", { "data-step": step.name }, make("summary", {}, `${MARKS[step.verdict]} ${name}`), ...inside);
}

draw();
