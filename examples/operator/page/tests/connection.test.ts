import assert from "node:assert/strict";
import { test } from "node:test";

import { Connection, RequestError, type Message, type SocketLike } from "../src/model/connection.js";

class Socket implements SocketLike {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  readonly sent: Record<string, unknown>[] = [];
  closed: number | undefined;
  constructor(readonly path: string) {}
  send(text: string): void {
    this.sent.push(JSON.parse(text) as Record<string, unknown>);
  }
  close(code = 1000): void {
    this.closed = code;
    this.onclose?.({ code });
  }
  hear(message: Message): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }
  get requests(): Record<string, unknown>[] {
    return this.sent.filter((frame) => frame["type"] !== "ping");
  }
}

function world(kept = new Map<string, string>()) {
  const sockets: Socket[] = [];
  const timers: { run: () => void; ms: number }[] = [];
  let ids = 0;
  const clock = { now: 0, visible: true };
  const around = {
    open: (path: string) => {
      const socket = new Socket(path);
      sockets.push(socket);
      return socket;
    },
    storage: {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, value: string) => void kept.set(key, value),
      removeItem: (key: string) => void kept.delete(key),
    },
    now: () => clock.now,
    uuid: () => `id-${kept.size}-${(ids += 1)}`,
    random: () => 0.5,
    after: (ms: number, run: () => void) => {
      const timer = { run, ms };
      timers.push(timer);
      return timer;
    },
    cancel: (timer: unknown) => {
      const index = timers.indexOf(timer as { run: () => void; ms: number });
      if (index >= 0) timers.splice(index, 1);
    },
    visible: () => clock.visible,
  };
  const fire = (): void => timers.shift()?.run();
  const last = (): Socket => sockets.at(-1) as Socket;
  return { around, sockets, timers, kept, clock, fire, last };
}

function started(kept?: Map<string, string>, fresh = false) {
  const all = world(kept);
  const connection = new Connection(all.around, fresh);
  connection.start();
  all.last().onopen?.();
  return { ...all, connection };
}

test("frames of a socket are numbered from 1 and answers find their request", async () => {
  const { connection, last } = started();
  const answer = connection.request("get", { session_id: "S" });
  assert.deepEqual(last().sent.map((frame) => frame["n"]), [1, 2]);
  const [frame] = last().requests;
  last().hear({ seq: 1, type: "answer", re: String(frame?.["id"]), value: { ok: true } });
  assert.deepEqual(await answer, { ok: true });
});

test("a refusal has its reason, its facts and the fresh view", async () => {
  const { connection, last } = started();
  const answer = connection.request("act", {});
  const id = String(last().requests[0]?.["id"]);
  last().hear({ seq: 1, type: "error", re: id, reason: "ROUND_CHANGED", message: "m", metadata: { a: "b" }, value: 7 });
  await assert.rejects(answer, (error: RequestError) => {
    assert.deepEqual([error.reason, error.metadata, error.value], ["ROUND_CHANGED", { a: "b" }, 7]);
    return true;
  });
});

test("after a cut the same request goes out again under its id, and the new socket asks for what follows", async () => {
  const { connection, last, fire, sockets } = started();
  last().hear({ seq: 4, type: "lobby", value: [] });
  const answer = connection.request("start", { round_no: "1" });
  const id = last().requests[0]?.["id"];
  last().close(1006);
  assert.equal(connection.connected, false);
  fire();
  assert.equal(sockets.length, 2);
  assert.match(last().path, /&after=4$/);
  assert.equal(last().path.split("&")[0], sockets[0]?.path.split("&")[0], "the connection keeps its id");
  last().onopen?.();
  const [again] = last().requests;
  assert.deepEqual([again?.["id"], again?.["n"], again?.["round_no"]], [id, 1, "1"]);
  last().hear({ seq: 5, type: "answer", re: String(id), value: 1 });
  assert.equal(await answer, 1);
});

test("a message that was taken before is not taken twice", () => {
  const { connection, last } = started();
  const taken: number[] = [];
  connection.onMessage = (message) => taken.push(message.seq ?? 0);
  for (const seq of [1, 2, 2, 1, 3]) last().hear({ seq, type: "line" });
  assert.deepEqual(taken, [1, 2, 3]);
});

test("restart begins the numbers anew and reaches the page", () => {
  const { connection, last } = started();
  const types: string[] = [];
  connection.onMessage = (message) => types.push(message.type);
  last().hear({ seq: 9, type: "line" });
  last().hear({ seq: 1, type: "restart" });
  last().hear({ seq: 2, type: "line" });
  assert.deepEqual(types, ["line", "restart", "line"]);
});

test("after a restart the bridge is asked again for what it has not answered, under the same id", () => {
  const { connection, last } = started();
  void connection.request("act", {});
  last().hear({ seq: 1, type: "restart" });
  const ids = last().requests.map((frame) => frame["id"]);
  assert.equal(ids.length, 2);
  assert.equal(ids[0], ids[1]);
});

test("an unanswered order outlives a reload and is sent under its id; a read does not", () => {
  const first = started();
  void first.connection.request("start", { round_no: "1" });
  void first.connection.request("get", {});
  const id = first.last().requests[0]?.["id"];
  const second = started(first.kept);
  assert.deepEqual(second.last().requests.map((frame) => [frame["id"], frame["type"]]), [[id, "start"]]);
  const late: string[] = [];
  second.connection.onLateAnswer = (request, message) => late.push(`${request.type} ${message.type}`);
  second.last().hear({ seq: 1, type: "answer", re: String(id), value: {} });
  assert.deepEqual(late, ["start answer"]);
  const third = started(first.kept);
  assert.deepEqual(third.last().requests, [], "what is answered is forgotten");
});

test("a copied tab gets a connection of its own", () => {
  const first = started();
  const second = started(new Map(first.kept), true);
  assert.notEqual(first.last().path, second.last().path);
});

test("the page comes back by itself, later each time, but not after an exclusion", () => {
  const { connection, last, timers, fire } = started();
  const states: string[] = [];
  connection.onState = (state) => states.push(state);
  const waits: number[] = [];
  for (let cut = 0; cut < 4; cut += 1) {
    last().close(1006);
    waits.push(timers[0]?.ms ?? -1);
    fire();
  }
  assert.deepEqual(waits, [0, 250, 500, 1000]);
  last().onopen?.();
  last().close(4001);
  assert.equal(states.at(-1), "ended");
  assert.equal(timers.length, 0);
});

test("a pong is measured from its own ping", () => {
  const { connection, last, clock, fire } = started();
  const pongs: number[] = [];
  connection.onPong = (time, sent) => pongs.push(time, sent);
  clock.now = 5000;
  fire();
  const [first, second] = last().sent.map((frame) => String(frame["id"]));
  clock.now = 5100;
  last().hear({ type: "pong", re: first ?? "", time: "1970-01-01T00:00:01Z" });
  clock.now = 5200;
  last().hear({ type: "pong", re: second ?? "", time: "1970-01-01T00:00:02Z" });
  assert.deepEqual(pongs, [1000, 0, 2000, 5000]);
});

test("a socket on which nothing answers two pings is left at the third", () => {
  const { last, fire } = started();
  fire();
  assert.equal(last().closed, undefined);
  fire();
  assert.equal(last().closed, 4000);
});

test("timers that come late leave a healthy socket alone", () => {
  const { last, clock, fire } = started();
  for (let minute = 1; minute <= 5; minute += 1) {
    last().hear({ type: "pong", re: String(last().sent.at(-1)?.["id"]), time: "1970-01-01T00:00:01Z" });
    clock.now = minute * 60_000;
    fire();
  }
  assert.equal(last().closed, undefined);
  assert.equal(last().sent.length, 6, "each beat has sent its ping");
});

test("a hidden page sends no ping, and one as soon as it is seen again", () => {
  const { connection, last, clock, fire, sockets } = started();
  clock.visible = false;
  for (let beat = 0; beat < 4; beat += 1) fire();
  assert.equal(last().sent.length, 1);
  assert.equal(last().closed, undefined);
  clock.visible = true;
  connection.hurry();
  assert.equal(last().sent.length, 2);
  assert.equal(sockets.length, 1);
});

test("what is stopped says nothing any more, not even its end", () => {
  const { connection, last, timers } = started();
  const told: string[] = [];
  connection.onState = (state) => told.push(state);
  connection.onMessage = (message) => told.push(message.type);
  connection.stop();
  last().hear({ seq: 1, type: "lobby", value: [] });
  assert.equal(last().closed, 1000);
  assert.deepEqual(told, []);
  assert.equal(timers.length, 0);
});

test("to take bets back is asked again after a cut, and after a reload", () => {
  const first = started();
  first.last().close(1006);
  void first.connection.request("hidden");
  first.fire();
  first.last().onopen?.();
  assert.deepEqual(first.last().requests.map((frame) => frame["type"]), ["hidden"]);
  const second = started(first.kept);
  assert.deepEqual(second.last().requests.map((frame) => frame["type"]), ["hidden"]);
});

test("damaged storage is a fresh start", () => {
  const { last } = started(new Map([["bridge", "{"]]));
  assert.deepEqual(last().requests, []);
});
