import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { RequestError } from "../src/model/connection.js";
import { takeBack } from "../src/state/hidden.js";
import type { Store } from "../src/state/store.js";

interface Seat {
  bets?: unknown[];
  round?: { round_id: string };
}

/** A table whose seat is, after each further read, the next one of `seats`. */
function table(...seats: Seat[]) {
  return {
    seat: { bets: ["ante"], round: { round_id: "R1" } } as Seat,
    mayBeTakenBack: true,
    isStating: false,
    takingBack: false,
    get hasOpenBets(): boolean {
      return (this.seat.bets?.length ?? 0) > 0 && this.seat.round?.round_id === "R1";
    },
    async read(): Promise<void> {
      this.seat = seats.shift() ?? this.seat;
    },
    tookBack(): void {
      this.takingBack = false;
    },
  };
}

function world(tables: ReturnType<typeof table>[], answers: (() => Promise<unknown>)[]) {
  const asked: string[] = [];
  const store = {
    tables,
    notice: "",
    emit: () => {},
    announce: () => {},
    t: (key: string) => key,
    link: {
      request: (type: string) => {
        asked.push(type);
        return answers.shift()?.() ?? Promise.resolve({});
      },
    },
  };
  return { store, asked, run: takeBack(store as unknown as Store) };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const taken: Seat = { bets: [], round: { round_id: "R1" } };

test("nothing is said before the bridge has answered and the table has no open bets", async () => {
  let answer: (value: unknown) => void = () => {};
  const play = table(taken);
  const { store, run } = world([play], [() => new Promise((resolve) => (answer = resolve))]);
  await settled();
  assert.equal(store.notice, "");
  assert.equal(play.takingBack, true, "no bet is placed meanwhile");
  answer({});
  await run;
  assert.equal(store.notice, "hidden");
  assert.equal(play.takingBack, false);
});

test("bets that were dealt meanwhile stand, and the page says so", async () => {
  const { store, run } = world([table({ bets: [], round: { round_id: "R2" } })], []);
  await run;
  assert.equal(store.notice, "hidden.stand");
});

test("bets of a window that is over long since were taken back, where no round of them is there", async () => {
  const { store, run } = world([table({})], []);
  await run;
  assert.equal(store.notice, "hidden");
});

test("bets that the table has locked stand", async () => {
  const play = table();
  Object.defineProperty(play, "hasOpenBets", { get: () => false });
  const { store, run } = world([play], []);
  await run;
  assert.equal(store.notice, "hidden.stand");
});

test("a refusal, or a bet that came behind, is asked about again a second later", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const late: Seat = { bets: ["ante"], round: { round_id: "R1" } };
    const { store, asked, run } = world([table(late, taken)], [() => Promise.reject(new RequestError("UNAVAILABLE", ""))]);
    for (let turn = 1; turn <= 3; turn += 1) {
      await settled();
      assert.equal(asked.length, turn);
      assert.equal(store.notice, turn === 3 ? "hidden" : "");
      mock.timers.tick(1000);
    }
    await run;
  } finally {
    mock.timers.reset();
  }
});

test("where nothing is open nothing is asked", async () => {
  const play = table();
  play.mayBeTakenBack = false;
  const { store, asked, run } = world([play], []);
  await run;
  assert.deepEqual([store.notice, asked], ["", []]);
});
