import assert from "node:assert/strict";
import { test } from "node:test";

import { formatElapsed, secondsLeft, ServerClock } from "../src/model/clock.js";
import { signalOf, takesBets } from "../src/model/light.js";
import type { TableView } from "../src/model/types.js";

const BASE = Date.parse("2026-01-01T12:00:00Z");

/** A page and a server with clocks of their own; the page's is `behind` ms behind. */
function world(behind: number): { clock: ServerClock; page: { now: number }; server(): number } {
  const page = { now: 5_000 };
  const server = (): number => BASE + page.now + behind;
  return { clock: new ServerClock(() => page.now), page, server };
}

test("the countdown is never later than the server's, whatever the delays are", () => {
  for (const [there, back] of [[0, 0], [5, 300], [300, 5], [80, 80]] as const) {
    const { clock, page, server } = world(123_456);
    const sent = page.now;
    page.now += there;
    const read = server();
    page.now += back;
    clock.heard(read, sent);
    const deadline = new Date(server() + 10_000).toISOString();
    const left = clock.left(deadline) ?? Number.NaN;
    assert.ok(left <= 10_000, `${left} ms are shown, 10000 are left`);
    assert.equal(left, 10_000 - there, "it is early by the way there only");
  }
});

test("the best of several pongs counts, and an old one no longer", () => {
  const { clock, page, server } = world(0);
  for (const there of [400, 10, 200]) {
    const sent = page.now;
    page.now += there;
    clock.heard(server(), sent);
  }
  assert.equal((clock.latest() ?? 0) - server(), 10);
  page.now += 200_000;
  clock.heard(server(), page.now);
  assert.equal((clock.latest() ?? 0) - server(), 0);
});

test("without a pong there is no countdown", () => {
  const { clock } = world(0);
  assert.equal(clock.left("2026-01-01T12:00:00Z"), undefined);
});

test("a time that has passed has 0 left", () => {
  const { clock, page, server } = world(0);
  clock.heard(server(), page.now);
  assert.equal(clock.left(new Date(server() - 5).toISOString()), 0);
});

test("elapsed time and seconds left are shown in whole seconds", () => {
  assert.equal(formatElapsed(3_723_999), "1:02:03");
  assert.deepEqual([0, 1, 1000, 1001].map(secondsLeft), [0, 1, 1, 2]);
});

test("the light goes from green to amber to red by the server's time, and says so in words", () => {
  const { clock, page, server } = world(0);
  clock.heard(server(), page.now);
  const at = (ms: number): string => new Date(server() + ms).toISOString();
  const table: TableView = {
    table: "t",
    state: "TABLE_STATE_BETTING",
    open_time: at(0),
    amber_time: at(10_000),
    deadline: at(15_000),
  };
  assert.deepEqual(signalOf(table, clock), { light: "green", words: "green", left: 15_000, part: 1 });
  page.now += 10_000;
  assert.deepEqual(signalOf(table, clock), { light: "amber", words: "amber", left: 5_000, part: 1 / 3 });
  assert.equal(takesBets(table, clock), true);
  page.now += 5_000;
  assert.deepEqual(signalOf(table, clock), { light: "red", words: "red", left: 0, part: 0 });
  assert.equal(takesBets(table, clock), false);
});

test("states without betting are red or off", () => {
  const { clock } = world(0);
  const light = (state: string): string => signalOf({ table: "t", state: `TABLE_STATE_${state}` }, clock).light;
  assert.equal(light("IDLE"), "green");
  for (const state of ["CLOSED", "FIXED", "OPENING", "DECIDING", "SETTLING", "RESULT", "VOIDING"]) {
    assert.equal(light(state), "red", state);
  }
  for (const state of ["SHUT", "PAUSED"]) assert.equal(light(state), "off", state);
});
