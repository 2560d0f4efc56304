/** The Play stream: what comes unrequested answers nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type PlayRequest, PlayResponseSchema, PlayStream } from "../src/index.js";
import { fakeClient } from "./fake_call.js";

test("notices and updates are told, and the answer that a request waits for is its own", async () => {
  const told: string[] = [];
  const { client, calls } = fakeClient<PlayRequest>();
  const listener = {
    onNotice: ({ roundId }: { roundId: string }) => void told.push(`notice ${roundId}`),
    onUpdate: ({ session }: { session?: { sessionId: string } }) => void told.push(`update ${session?.sessionId}`),
  };
  for (const stream of [new PlayStream(() => client, {}, listener), new PlayStream(() => client, {})]) {
    const asked = stream.getRound({ sessionId: "s1", roundId: "r1" });
    await new Promise(setImmediate); // it is sent
    const call = calls.at(-1)!;
    const say = (response: NonNullable<MessageInitShape<typeof PlayResponseSchema>["response"]>) =>
      call.emit("data", create(PlayResponseSchema, { response }));
    assert.equal(call.sent.length, 1);
    say({ case: "update", value: { session: { sessionId: "s1" } } });
    say({ case: "notice", value: { sessionId: "s1", roundId: "r1" } });
    say({ case: "getRound", value: { round: { roundId: "r1" } } });
    assert.equal((await asked).round?.roundId, "r1");
    stream.close();
  }
  assert.deepEqual(told, ["update s1", "notice r1"]); // of the first; the second has no listener
  assert.equal(calls.length, 2);
});
