/** Windows of a table: how long each was open, and which decision fell into which (check 26). */

import { demand } from "../checks.js";
import { phasesOf, type Stand } from "../game.js";
import { objectsAt, text, whole, type JsonObject } from "../json.js";
import { at } from "../statements.js";
import type { Trace } from "../trace.js";
import { canDeal, type TableRound } from "./state.js";

/** How much longer than was said a window may have been open. */
const GRACE_MS = 10000;

function checkOpen(open: number, close: number, ms: bigint, ranOut: boolean, name: string): void {
  demand(close >= open, 26, `the ${name} window closes before it opens`);
  demand(!ranOut || BigInt(close - open) >= ms, 26, `the ${name} window was open for ${close - open} ms, not for ${ms}`);
  demand(BigInt(close - open) <= ms + BigInt(GRACE_MS), 26, `the ${name} window was open for ${close - open} ms, too long for ${ms}`);
}

/** Of a table_round: its betting window. */
export function checkBetting(body: JsonObject): void {
  const [open, close] = [at(body, "betting_open_time"), at(body, "betting_close_time")];
  checkOpen(open, close, whole(body, "betting_ms"), true, "betting");
}

/** Of a table_final: its decision windows. */
export function checkWindows(round: TableRound, body: JsonObject, trace: Trace | undefined): void {
  const windows = objectsAt(body, "windows");
  demand(round.deal !== null || windows.length === 0, 26, "a round that was not dealt has decision windows");
  const phases = round.ruleset && canDeal(round) ? phasesOf(round.ruleset) : null;
  const ms = whole(round.body, "decision_ms");
  let [last, phase] = [round.deal?.time ?? 0, 0];
  for (const window of windows) {
    const [open, close, end] = [at(window, "open_time"), at(window, "close_time"), text(window, "end")];
    const name = text(window, "phase");
    demand(!phases || name === phases[phase], 26, `a window of ${name} where one of ${phases?.[phase] ?? "none"} is due`);
    demand(open >= last, 26, `the ${name} window opens before the draw, or before the window before it closed`);
    checkOpen(open, close, ms, end === "time", name);
    demand(end !== "decided" || round.body["early_close"] === true, 26, `the ${name} window was closed early`);
    if (end !== "paused") phase += 1;
    last = close;
  }
  const isSettled = text(body, "status") === "settled";
  demand(!phases || !isSettled || phase === phases.length, 26, "a phase of a settled round has no last window");
  trace?.("windows", () => ({
    windows: windows.map((one) => ["phase", "open_time", "close_time", "end"].map((key) => text(one, key)).join(" ")).join("; "),
    decision_ms: String(ms),
  }));
}

/** Of a seat: each of its decisions in a window of its phase. */
export function checkInWindows(round: TableRound, final: JsonObject, stand: Stand): void {
  const windows = round.final ? objectsAt(round.final.body, "windows") : [];
  const lastOf = (phase: string): JsonObject | undefined =>
    windows.filter((one) => text(one, "phase") === phase).at(-1);
  for (const action of objectsAt(final, "actions")) {
    const [by, phase, time] = [text(action, "by"), text(action, "phase"), at(action, "time")];
    demand(by !== "rule", 26, "an action by a rule at a table");
    if (by === "timer") {
      const last = lastOf(phase);
      const isIts = last !== undefined && text(last, "end") === "time" && at(last, "close_time") === time;
      demand(isIts, 26, `an action by the timer that is not the end of the ${phase} window`);
      continue;
    }
    const isInside = windows.some(
      (one) => text(one, "phase") === phase && time >= at(one, "open_time") && time <= at(one, "close_time"),
    );
    demand(isInside, 26, `a decision outside of the ${phase} windows`);
  }
  const open = stand.phase === "" ? undefined : lastOf(stand.phase);
  demand(!open || text(open, "end") !== "time", 26, `the ${stand.phase} window ran out, and the seat has no decision of it`);
}
