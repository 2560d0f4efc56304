/** What is watched after an error: what it names is forgotten, and all of it can be watched anew. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { ErrorInfoSchema } from "../build/google/rpc/error_details_pb.js";
import { StatusSchema } from "../build/google/rpc/status_pb.js";
import { Code, type RgsError, TableWatch, type WatchRequest, WatchResponseSchema } from "../src/index.js";
import { type FakeCall, fakeClient, opened } from "./fake_call.js";

function made() {
  const { client, calls } = fakeClient<WatchRequest>();
  const errors: RgsError[] = [];
  const policy = { attempts: 2, firstPauseMs: 1, maxPauseMs: 5 };
  const watch = new TableWatch(() => client, { policy }, { onError: (error) => void errors.push(error) });
  return { watch, calls, errors };
}

/** What was asked for on a stream, in its order: `watchTable t1`. */
function asked(call: FakeCall<WatchRequest>): string[] {
  return call.sent.map(({ request }) => {
    switch (request.case) {
      case "watchTable":
      case "leaveTable":
        return `${request.case} ${request.value.table}`;
      case "watchSession":
      case "leaveSession":
        return `${request.case} ${request.value.sessionId}`;
      default:
        return `${request.case}`;
    }
  });
}

/** Answer with an error, as the server does about what is watched. */
function refuse(call: FakeCall<WatchRequest>, metadata: Record<string, string>, requestId = ""): void {
  const info = anyPack(ErrorInfoSchema, create(ErrorInfoSchema, { reason: "SOME", metadata }));
  const value = create(StatusSchema, { code: Code.NOT_FOUND, message: "no", details: [info] });
  call.emit("data", create(WatchResponseSchema, { requestId, response: { case: "error", value } }));
}

const ALL = ["watchTable t1", "watchTable t2", "watchSession s1"];

function watchAll(watch: TableWatch): void {
  watch.watchTable("t1");
  watch.watchTable("t2");
  watch.watchSession("s1");
}

test("what is watched already is not asked for again", () => {
  const { watch, calls } = made();
  watchAll(watch);
  watchAll(watch);
  assert.deepEqual(asked(calls[0]!), ALL);
  watch.close();
});

for (const [what, metadata, forgotten] of [
  ["a table", { table: "t1" }, "watchTable t1"],
  ["a wrong name", { field: "table", value: "t1" }, "watchTable t1"],
  ["a session", { session_id: "s1" }, "watchSession s1"],
  ["a session and its table", { session_id: "s1", table: "t2" }, "watchSession s1"],
] as const) {
  test(`an error that names ${what}: it alone is forgotten, and is watched anew`, async () => {
    const { watch, calls, errors } = made();
    watchAll(watch);
    refuse(calls[0]!, {});
    refuse(calls[0]!, metadata);
    assert.equal(errors.length, 2);
    calls[0]!.fail(Code.UNAVAILABLE);
    const second = await opened(calls, 2);
    assert.deepEqual(asked(second), ALL.filter((one) => one !== forgotten));
    watchAll(watch);
    assert.deepEqual(asked(second).slice(2), [forgotten]);
    watchAll(watch);
    assert.equal(second.sent.length, 3);
    watch.close();
  });
}

test("an error that names nothing: all can be watched anew, once, and nothing is forgotten", async () => {
  const { watch, calls } = made();
  watchAll(watch);
  refuse(calls[0]!, { limit: "10000" });
  watchAll(watch);
  watchAll(watch);
  assert.deepEqual(asked(calls[0]!), [...ALL, ...ALL]);
  refuse(calls[0]!, { limit: "10000" });
  watch.leaveTable("t2");
  calls[0]!.fail(Code.UNAVAILABLE);
  const second = await opened(calls, 2);
  watchAll(watch); // it has begun with the two others
  assert.deepEqual(asked(second), ["watchTable t1", "watchSession s1", "watchTable t2"]);
  watch.close();
});

test("an error about play leaves what is watched alone", () => {
  const { watch, calls, errors } = made();
  watchAll(watch);
  refuse(calls[0]!, { table: "t1" }, "of a request that is not waited for");
  watchAll(watch);
  assert.equal(errors.length, 1);
  assert.deepEqual(asked(calls[0]!), ALL);
  watch.close();
});

test("a stream that was given up begins anew with all that was watched", async () => {
  const { watch, calls, errors } = made();
  watchAll(watch);
  for (let count = 1; count <= 2; count++) (await opened(calls, count)).fail(Code.UNAVAILABLE);
  assert.equal(errors.length, 1);
  watchAll(watch);
  assert.deepEqual(asked(await opened(calls, 3)), ALL);
  watch.close();
});
