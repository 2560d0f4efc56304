import assert from "node:assert/strict";
import { test } from "node:test";

import type { Game, RoundView, SeatView, SessionView, TableView } from "../src/model/types.js";
import type { Store } from "../src/state/store.js";
import { SoloPlay } from "../src/state/solo.js";
import { TablePlay } from "../src/state/table.js";

const SESSION: SessionView = { session_id: "S", table: "t", balance_minor: "1000", session_version: "4", status: "SESSION_STATUS_OPEN" };
const OPEN: RoundView = { round_id: "R", round_version: "2", status: "ROUND_STATUS_OPEN" };
const SETTLED: RoundView = { round_id: "R", round_version: "3", status: "ROUND_STATUS_SETTLED" };

/** The page's own device is number 1. */
Object.defineProperty(globalThis, "sessionStorage", { value: { getItem: () => "1", setItem: () => {} }, configurable: true });

function world() {
  const said: string[] = [];
  const proved: string[] = [];
  const store = {
    clock: { now: () => 0, left: () => 0 },
    emit: () => {},
    tellTable: () => {},
    tellRound: (_: unknown, round: RoundView) => said.push(`${round.round_id} ${round.round_version}`),
    proofs: { start: (_: unknown, round: RoundView) => proved.push(round.round_id) },
  } as unknown as Store;
  const game = { ruleset: { id: "uth-online" }, bets: [] } as unknown as Game;
  return { said, proved, table: new TablePlay(store, SESSION, game), solo: new SoloPlay(store, SESSION, game) };
}

function seat(round?: RoundView): SeatView {
  return { session_id: "S", table: "t", device_no: 1, seat_version: "5", ...(round && { round }) };
}

test("the result of a table stays when the answer to the decision comes behind it", () => {
  const { said, proved, table } = world();
  table.takeTable({ table: "t", version: "7", state: "TABLE_STATE_DECIDING", round_id: "R" } as TableView);
  table.take({ seat: seat({ ...OPEN, round_version: "1" }) });
  table.takeTable({ table: "t", version: "8", state: "TABLE_STATE_RESULT", round_id: "R" } as TableView);
  table.takeSeat(seat(SETTLED));
  table.take({ seat: seat(OPEN) });
  assert.equal(table.round, SETTLED);
  assert.deepEqual([said, proved], [["R 1", "R 3"], ["R"]]);
});

test("another round is taken whatever its version, and a seat without a round", () => {
  const { table } = world();
  table.takeSeat(seat(SETTLED));
  table.takeSeat(seat());
  assert.equal(table.round, undefined);
  table.takeSeat(seat(SETTLED));
  table.takeSeat(seat({ ...OPEN, round_id: "Q", round_version: "1" }));
  const taken: SeatView | undefined = table.seat;
  assert.equal(taken?.round?.round_id, "Q");
});

test("a round of solo play keeps its later view", () => {
  const { solo } = world();
  solo.take({ round: SETTLED });
  solo.take({ round: OPEN });
  assert.equal(solo.round, SETTLED);
});

test("of two views of a session the one with the higher version stays", () => {
  const { table } = world();
  table.take({ session: { ...SESSION, session_version: "6", balance_minor: "1400" } });
  table.take({ session: { ...SESSION, session_version: "5", balance_minor: "600" } });
  assert.equal(table.balance, 1400n);
  table.take({ session: { ...SESSION, session_version: "6", balance_minor: "1500" } });
  assert.equal(table.balance, 1500n, "an erasure or a limit of the operator changes a view and no version");
  const { session_version: _, ...older } = SESSION;
  table.take({ session: { ...older, balance_minor: "700" } });
  assert.equal(table.balance, 700n, "a server from before versions says none");
});
