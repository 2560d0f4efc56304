#!/usr/bin/env node
/**
 * rgs-verify export FILE… --keys KEYS [--root FINGERPRINT] [--ruleset FILE]… [--jurisdiction FILE]…
 * rgs-verify round FILE… --keys KEYS [--root FINGERPRINT] [--round ID] [--path FILE]
 * rgs-verify saved FILE [--root FINGERPRINT] [--policy FILE]
 * rgs-verify receipt ENVELOPE PROOF --policy FILE [--root FINGERPRINT] [--keys KEYS]
 *
 * Reads files and prints what the library says. Exit 0: verified; 1: not; 2: wrong usage, or a file that cannot be read.
 */

import { createReadStream, readFileSync } from "node:fs";
import { webcrypto } from "node:crypto";
import { parseArgs } from "node:util";

globalThis.crypto ??= webcrypto; // Node 18 keeps it in a module

const { verifyExport, verifyReceipt, verifyRound, verifySavedReceipt } = await import("../dist/index.js");

const OPTIONS = {
  keys: { type: "string" },
  root: { type: "string" },
  policy: { type: "string" },
  round: { type: "string" },
  path: { type: "string" },
  ruleset: { type: "string", multiple: true, default: [] },
  jurisdiction: { type: "string", multiple: true, default: [] },
};
const LINE_BYTES_MAX = 73728;

class UsageError extends Error {}

function bytes(path) {
  return new Uint8Array(readFileSync(path));
}

function needed(value, what) {
  if (value === undefined) throw new UsageError(`${what} is missing`);
  return value;
}

/** The lines of files as one export, each with its line feed; of a longer line the beginning only. */
async function* lines(paths, places) {
  for (const path of paths) {
    let [held, number] = [Buffer.alloc(0), 0];
    const give = (line) => {
      number += 1;
      places.push(`${path}:${number}`);
      return new Uint8Array(line.subarray(0, LINE_BYTES_MAX + 1));
    };
    for await (const piece of createReadStream(path)) {
      held = Buffer.concat([held, piece]);
      for (let end = held.indexOf(10); end >= 0; end = held.indexOf(10)) {
        yield give(held.subarray(0, end + 1));
        held = held.subarray(end + 1);
      }
      held = held.subarray(0, LINE_BYTES_MAX + 1); // a longer line is none, and is not held
    }
    if (held.length) yield give(held);
  }
}

async function exported(files, values, options) {
  const places = [];
  const rules = { rulesets: values.ruleset.map(text), jurisdictions: values.jurisdiction.map(text) };
  const report = await verifyExport(lines(files, places), bytes(needed(values.keys, "--keys")), { ...options, ...rules });
  for (const { check, name, message, line, place } of report.failures) {
    const where = line === null ? { keys: values.keys, end: "end of files" }[place] : places[line - 1];
    console.log(`FAILED ${check} ${name}: ${message} (${where})`);
  }
  const { counts } = report;
  if (counts?.seatsUnrecoverable) console.log(`EXPOSED: ${counts.seatsUnrecoverable} void seats whose deck was never shown`);
  if (counts?.roundsDemo) console.log(`PLAY MONEY: ${counts.roundsDemo} rounds, in no sum`);
  if (counts?.hasDevelopmentKeys) console.log("DEVELOPMENT KEYS");
  console.log(report.lastLine);
  return report.passed;
}

function text(path) {
  return readFileSync(path, "utf8");
}

async function round(files, values, options) {
  const statements = files.flatMap((path) => text(path).split("\n").filter((line) => line !== ""));
  const input = { keys: bytes(needed(values.keys, "--keys")), statements };
  if (values.round) input.roundId = values.round;
  if (values.path) input.path = text(values.path).split(/\s+/).filter((hash) => hash !== "");
  return shown(await verifyRound(input, options), options);
}

async function saved([file, ...more], values, options) {
  if (more.length) throw new UsageError("a saved receipt is one file");
  return shown(await verifySavedReceipt(text(file), values.policy ? { ...options, policy: text(values.policy) } : options), options);
}

function shown(report, options) {
  for (const { step, verdict, message, looked } of report.steps) {
    console.log(`${verdict.padEnd(8)} ${step}${message ? `: ${message}` : ""}`);
    for (const [name, value] of Object.entries(looked)) console.log(`             ${name} ${value}`);
  }
  if (report.voidReason) console.log(`VOID ${report.voidReason}`);
  if (report.isDemo) console.log("PLAY MONEY");
  if (report.isDevelopment) console.log("DEVELOPMENT KEYS");
  console.log(`${report.verdict} ${report.isAnchored ? "ANCHORED" : "UNANCHORED"}`);
  return report.verdict === "verified" && (options.root === undefined || report.isAnchored);
}

async function receipt([envelope, proof, ...more], values, options) {
  if (proof === undefined || more.length) throw new UsageError("a receipt is two files, ENVELOPE and PROOF");
  const input = { envelope: bytes(envelope), proof: bytes(proof), policy: text(needed(values.policy, "--policy")) };
  const report = await verifyReceipt(values.keys ? { ...input, keys: bytes(values.keys) } : input, options);
  if (!report.passed) console.log(`FAILED ${report.message}`);
  else {
    console.log(`${report.kind} ${report.hash}: entry ${report.index} of ${report.size} in ${report.origin}`);
    for (const [name, seconds] of Object.entries(report.witnesses)) {
      console.log(`cosigned by ${name} at ${new Date(seconds * 1000).toISOString()}`);
    }
    if (report.isDevelopment) console.log("DEVELOPMENT KEYS");
  }
  console.log(`${report.verdict} ${report.isAnchored ? "ANCHORED" : "UNANCHORED"}`);
  return report.passed;
}

async function main() {
  const { values, positionals } = parseArgs({ options: OPTIONS, allowPositionals: true });
  const [command, ...files] = positionals;
  const run = { export: exported, round, saved, receipt }[command];
  if (!run || files.length === 0) throw new UsageError("rgs-verify export|round|saved|receipt FILE… --keys KEYS [--root FINGERPRINT]");
  if (values.root !== undefined && !/^[0-9a-f]{64}$/.test(values.root)) throw new UsageError("--root is 64 lowercase hex digits");
  return run(files, values, values.root === undefined ? {} : { root: values.root });
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  const isExpected = error instanceof UsageError || error.code !== undefined || ["RulesError", "SavedFileError"].includes(error.name);
  if (!isExpected) throw error;
  console.error(`rgs-verify: ${error.message}`);
  process.exitCode = 2;
}
