/** What the traffic light of a table shows (T-1), for the ring and the words beside it. */

import type { ServerClock } from "./clock.js";
import { bare, type TableView } from "./types.js";

export type Light = "green" | "amber" | "red" | "off";

export interface Signal {
  light: Light;
  /** The key of the words: `light.<words>`. */
  words: string;
  /** Milliseconds left, where a window is open. */
  left?: number;
  /** The part of the window that is left, 0 to 1. */
  part?: number;
}

export function signalOf(table: TableView, clock: ServerClock): Signal {
  const state = bare(table.state, "TABLE_STATE_");
  switch (state) {
    case "IDLE":
      return { light: "green", words: "idle" };
    case "BETTING": {
      const time = timeOf(table, clock);
      if (time.left === 0) return { light: "red", words: "red", ...time };
      const toAmber = clock.left(table.amber_time);
      return toAmber === 0 ? { light: "amber", words: "amber", ...time } : { light: "green", words: "green", ...time };
    }
    case "CLOSED":
    case "FIXED":
    case "OPENING":
      return { light: "red", words: "red" };
    case "DECIDING":
      return { light: "red", words: "deciding", ...timeOf(table, clock) };
    case "SETTLING":
      return { light: "red", words: "settling" };
    case "RESULT":
      return { light: "red", words: "result", ...timeOf(table, clock) };
    case "VOIDING":
      return { light: "red", words: "voiding" };
    case "PAUSED":
      return { light: "off", words: "paused" };
    default:
      return { light: "off", words: "shut" };
  }
}

/** Whether bets of the player are taken now. */
export function takesBets(table: TableView, clock: ServerClock): boolean {
  const { light, words } = signalOf(table, clock);
  return light === "green" || light === "amber" || words === "idle";
}

function timeOf(table: TableView, clock: ServerClock): { left?: number; part?: number } {
  const left = clock.left(table.deadline);
  if (left === undefined) return {};
  const whole = Date.parse(table.deadline ?? "") - Date.parse(table.open_time ?? "");
  return whole > 0 ? { left, part: Math.min(1, left / whole) } : { left };
}
