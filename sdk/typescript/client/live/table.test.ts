/** A seat at a table over the Watch stream: join, bet, views, a cut, decisions until the result; what cannot be watched. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, RoundStatus, type SeatView, type TableView } from "../src/index.js";
import { bought, connection, decision } from "./around.js";
import { Proxy } from "./proxy.js";

const TABLE = process.env["RGS_TABLE"] ?? "";

test("a round at a table", async () => {
  const direct = connection();
  const proxy = await Proxy.before(direct.address);
  const rgs = connect({ ...direct, address: proxy.address });
  const states: number[] = [];
  let seen: (() => void) | undefined;
  let table: TableView | undefined;
  let seat: SeatView | undefined;
  const watch = rgs.tableWatch({
    onTable: (view) => {
      table = view;
      states.push(view.state);
      seen?.();
    },
    onSeat: (view) => {
      seat = view;
      seen?.();
    },
  });
  const until = async (done: () => boolean): Promise<void> => {
    while (!done()) await new Promise<void>((resolve) => (seen = resolve));
  };
  try {
    const entry = (await rgs.tables.listTables({})).tables.find((one) => one.table === TABLE)!;
    const session = await bought(rgs, entry.game, TABLE);
    const { sessionId } = session;
    watch.watchTable(TABLE);
    watch.watchSession(sessionId);
    const joined = (await watch.join({ sessionId, nickname: "Node" })).seat!;
    const placed = (
      await watch.placeBets({
        sessionId,
        deviceNo: joined.deviceNo,
        seatVersion: joined.seatVersion,
        bets: [{ bet: "ante", amountMinor: entry.limits.find(({ bet }) => bet === "ante")!.minMinor }],
      })
    ).seat!;
    assert.ok(placed.reservedMinor > 0n);
    proxy.cut(); // the stream is opened again with all that was watched
    const round = () => seat?.round;
    await until(() => round()?.status === RoundStatus.OPEN || round()?.status === RoundStatus.SETTLED);
    while (round()!.status === RoundStatus.OPEN) {
      const view = round()!;
      if (view.legalActions.length === 0) {
        await until(() => round() !== view);
        continue;
      }
      await watch.decide({
        sessionId,
        deviceNo: joined.deviceNo,
        roundId: view.roundId,
        roundVersion: view.roundVersion,
        action: decision(view),
      });
      await until(() => round()!.roundVersion !== view.roundVersion || round()!.status !== RoundStatus.OPEN);
    }
    assert.equal(round()!.status, RoundStatus.SETTLED);
    assert.ok(table !== undefined && states.length > 3);
    assert.ok(proxy.connections >= 2);
    await watch.leave({ sessionId, deviceNo: joined.deviceNo });
  } finally {
    watch.close();
    rgs.close();
    proxy.close();
  }
});

test("a table and a session that are not there are named, and are asked for anew", async () => {
  const rgs = connect(connection());
  const named: string[] = [];
  let told: (() => void) | undefined;
  const watch = rgs.tableWatch({
    onError: ({ reason, metadata }) => {
      named.push(`${reason} ${metadata["table"] ?? metadata["session_id"] ?? metadata["value"]}`);
      told?.();
    },
  });
  const unknown = "0".repeat(26);
  const expected = ["NOT_FOUND no-such-table", `NOT_FOUND ${unknown}`, "INVALID_FIELD No Name"];
  try {
    for (let times = 1; times <= 2; times++) {
      watch.watchTable("no-such-table");
      watch.watchSession(unknown);
      watch.watchTable("No Name");
      while (named.length < expected.length * times) await new Promise<void>((resolve) => (told = resolve));
    }
    assert.deepEqual(named, [...expected, ...expected]);
  } finally {
    watch.close();
    rgs.close();
  }
});
