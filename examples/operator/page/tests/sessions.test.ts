import assert from "node:assert/strict";
import { test } from "node:test";

import { Sessions } from "../src/state/sessions.js";
import type { Store } from "../src/state/store.js";
import type { TablePlay } from "../src/state/table.js";

function world(tables: number) {
  const said: string[] = [];
  const asked: string[] = [];
  const store = {
    tables: Array.from({ length: tables }, (_, index) => ({ id: `S${index}`, tableId: `t${index}` })) as unknown as TablePlay[],
    screen: "tables",
    solo: undefined,
    front: 0,
    notice: "",
    jurisdiction: { tables_max: 4 },
    currency: "EUR",
    sound: { prepare: () => {}, muted: false },
    emit: () => {},
    closeDialog: () => {},
    announce: (text: string) => said.push(text),
    fail: (error: unknown): void => {
      throw error;
    },
    t: (key: string) => key,
    entry: () => undefined,
    game: () => ({ ruleset: { id: "uth-online" } }),
    playOf: () => undefined,
    link: { request: async (type: string) => asked.push(type) },
  };
  return { store, said, asked, sessions: new Sessions(store as unknown as Store) };
}

test("a session that is open and has no room on the screen is said to be there, and the lobby goes on with it", async () => {
  const { store, said, sessions } = world(4);
  const session = { session_id: "S5", table: "t5", ruleset: { id: "uth-online" } };
  assert.equal(await sessions.adopt({ session }), false);
  assert.equal(store.tables.length, 4);
  assert.deepEqual([store.notice, said], ["tables.full", ["tables.full"]]);
  // Once there is room, the lobby opens the same session, without another launch.
  store.tables = store.tables.slice(1);
  let adopted: unknown;
  sessions.adopt = async (views) => {
    adopted = views.session;
    return true;
  };
  await sessions.launch({ game: "uth-online", table: "t5" }, "real", true);
  assert.equal(adopted, session);
});

test("a table beside as many as are allowed is not opened at the server either", async () => {
  const { store, asked, sessions } = world(2);
  store.jurisdiction.tables_max = 2;
  store.screen = "solo";
  await sessions.launch({ game: "uth-online", table: "t5" }, "real", true);
  assert.deepEqual([store.notice, asked, store.tables.length], ["tables.full", [], 2]);
});

test("to switch to a table leaves the others, whatever screen is shown", async () => {
  for (const screen of ["tables", "solo", "lobby"]) {
    const { store, sessions } = world(2);
    store.screen = screen;
    const left: string[] = [];
    sessions.leaveTable = async (play) => {
      left.push(play.tableId);
      store.tables = store.tables.filter((each) => each !== play);
    };
    Object.assign(globalThis, { fetch: () => Promise.reject(new Error("no launch in this test")) });
    const failed: unknown[] = [];
    store.fail = (error) => void failed.push(error);
    await sessions.launch({ game: "uth-online", table: "t5" });
    assert.deepEqual(left, ["t0", "t1"], screen);
    assert.equal(failed.length, 1, "and only then is the new one launched");
  }
});

test("a table that cannot be left stays, and no other one is opened", async () => {
  const { store, sessions } = world(1);
  Object.assign(store.tables[0] as object, { note: { text: "a round is in play" } });
  sessions.leaveTable = async () => {};
  await sessions.launch({ game: "uth-online", table: "t5" });
  assert.deepEqual([store.notice, store.tables.length], ["a round is in play", 1]);
});
