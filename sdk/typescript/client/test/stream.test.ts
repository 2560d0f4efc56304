/** Requests on a stream that breaks: what is sent again, in which order, how often; answers to their own requests. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClientDuplexStream } from "@grpc/grpc-js";
import { errorOf } from "../src/errors.js";
import { Code, DEFAULT_POLICY, OutcomeUnknownError, RgsError } from "../src/index.js";
import { RequestStream } from "../src/stream.js";
import { FakeCall, opened } from "./fake_call.js";
import { refusal } from "./refusal.js";

interface Answer {
  id: string;
  error?: RgsError;
  view?: boolean;
}

function made(policy: Partial<typeof DEFAULT_POLICY> = {}) {
  const calls: FakeCall<string>[] = [];
  const greetings: string[] = [];
  const errors: RgsError[] = [];
  const views: Answer[] = [];
  const stream = new RequestStream<string, Answer>(
    {
      open: () => {
        const call = new FakeCall<string>();
        calls.push(call);
        return call as unknown as ClientDuplexStream<string, Answer>;
      },
      greetings: () => greetings,
      take: (answer) => {
        if (answer.view) views.push(answer);
        return answer.view === true;
      },
      requestIdOf: ({ id }) => id,
      errorIn: ({ error }) => error,
      onError: (error) => errors.push(error),
      onRepeat: () => undefined,
    },
    { ...DEFAULT_POLICY, attempts: 3, firstPauseMs: 2, maxPauseMs: 20, ...policy },
  );
  return { stream, calls, greetings, errors, views, opened: (count: number) => opened(calls, count) };
}

test("answers find their request by its id, in any order; those without an id in theirs", async () => {
  const { stream, calls } = made();
  const asked = ["a", "b", "", ""].map((id, index) => stream.ask(`${index}`, id));
  const call = calls[0]!;
  call.emit("data", { id: "b" });
  const first = { id: "" };
  const second = { id: "" };
  call.emit("data", first);
  call.emit("data", { id: "a" });
  call.emit("data", second);
  call.emit("data", { id: "a" }); // nobody waits for it any more
  const answers = await Promise.all(asked);
  assert.deepEqual(answers.map(({ id }) => id), ["a", "b", "", ""]);
  assert.ok(answers[2] === first && answers[3] === second);
  assert.equal(calls.length, 1);
});

test("what was not answered is sent again on another stream, in its order, after what is watched", async () => {
  const { stream, greetings, views, calls, opened } = made();
  greetings.push("watch");
  stream.tell("watch");
  const [a, b, c] = [stream.ask("A", "a"), stream.ask("B", "b"), stream.ask("C", "c")];
  assert.deepEqual(calls[0]!.sent, ["watch", "A", "B", "C"]);
  calls[0]!.emit("data", { id: "", view: true });
  calls[0]!.emit("data", { id: "b" });
  calls[0]!.fail(Code.UNAVAILABLE);
  calls[0]!.emit("end"); // the end of a stream that is given up
  calls[0]!.emit("data", { id: "a", view: true }); // and what it still says
  const d = stream.ask("D", "d"); // while no stream is open
  const call = await opened(2);
  assert.deepEqual(call.sent, ["watch", "A", "C", "D"]);
  for (const id of ["a", "c", "d"]) call.emit("data", { id });
  assert.deepEqual((await Promise.all([a, b, c, d])).map(({ id }) => id), ["a", "b", "c", "d"]);
  assert.equal(views.length, 1);
  stream.close();
});

test("a stream that breaks again and again ends in an open outcome, with the id", async () => {
  const { stream, errors, opened } = made();
  const asked = stream.ask("A", "a");
  asked.catch(() => undefined);
  for (let count = 1; count <= 3; count++) (await opened(count)).fail(Code.UNAVAILABLE);
  await assert.rejects(asked, (error: unknown) => error instanceof OutcomeUnknownError && error.requestId === "a");
  assert.deepEqual(errors, []); // whoever asked was told
  // The next request opens a stream anew, and has all of its attempts.
  const later = stream.ask("B", "b");
  for (let count = 4; count <= 5; count++) (await opened(count)).fail(Code.UNAVAILABLE);
  (await opened(6)).emit("data", { id: "b" });
  await later;
});

test("a watched stream that cannot be opened is given up, and says so", async () => {
  const { stream, greetings, errors, calls, opened } = made();
  greetings.push("watch");
  stream.tell("watch");
  for (let count = 1; count <= 3; count++) (await opened(count)).fail(Code.UNAVAILABLE);
  assert.equal(errors.length, 1);
  assert.equal(calls.length, 3);
  stream.tell("watch"); // anew: it has all its attempts again
  for (let count = 4; count <= 6; count++) (await opened(count)).fail(Code.UNAVAILABLE);
  assert.equal(errors.length, 2);
  assert.equal(calls.length, 6);
});

test("a stream that breaks while nothing waits is opened by the next request", async () => {
  const { stream, calls } = made();
  const asked = stream.ask("A", "a");
  calls[0]!.emit("data", { id: "a" });
  await asked;
  calls[0]!.fail(Code.UNAVAILABLE);
  await new Promise((resolve) => setTimeout(resolve, 30)); // longer than the longest pause
  assert.equal(calls.length, 1);
  const later = stream.ask("B", "b");
  assert.equal(calls.length, 2);
  calls[1]!.emit("data", { id: "b" });
  await later;
});

test("a refused stream is not opened again", async () => {
  const { stream, calls } = made();
  const asked = stream.ask("A", "a");
  calls[0]!.fail(Code.UNAUTHENTICATED);
  await assert.rejects(asked, (error: unknown) => error instanceof RgsError && error.code === Code.UNAUTHENTICATED);
  assert.equal(calls.length, 1);
});

test("a refusal in band that may pass is repeated on the same stream, with the same message, a bounded number of times", async () => {
  const { stream, calls } = made();
  const call = () => calls[0]!;
  const asked = stream.ask("A", "a");
  const pending = () => errorOf(refusal(Code.FAILED_PRECONDITION, "OPERATION_PENDING", 5));
  for (let count = 1; count <= 3; count++) {
    while (call().sent.length < count) await new Promise((resolve) => setTimeout(resolve, 1));
    call().emit("data", { id: "a", error: pending() });
  }
  await assert.rejects(asked, (error: unknown) => error instanceof RgsError && error.reason === "OPERATION_PENDING");
  assert.deepEqual(call().sent, ["A", "A", "A"]);
  const refused = stream.ask("B", "b");
  call().emit("data", { id: "b", error: errorOf(refusal(Code.INVALID_ARGUMENT, "INVALID_FIELD")) });
  await assert.rejects(refused, (error: unknown) => error instanceof RgsError && error.reason === "INVALID_FIELD");
  assert.deepEqual(call().sent, ["A", "A", "A", "B"]);
});

test("a stream that says nothing is given up, and the request is sent on another", async () => {
  const { stream, calls, opened } = made({ timeoutMs: 20 });
  const asked = stream.ask("A", "a");
  const second = await opened(2);
  assert.ok(calls[0]!.isCancelled);
  assert.deepEqual(second.sent, ["A"]);
  second.emit("data", { id: "a" });
  await asked;
});

test("a closed stream leaves nothing waiting, and takes nothing", async () => {
  const { stream, calls } = made();
  const asked = stream.ask("A", "a");
  stream.close();
  await assert.rejects(asked, (error: unknown) => error instanceof OutcomeUnknownError && error.requestId === "a");
  assert.ok(calls[0]!.isCancelled);
  await assert.rejects(stream.ask("B", "b"), (error: unknown) => error instanceof RgsError && error.requestId === "b");
  assert.equal(calls.length, 1);
});

test("an error that belongs to no request is told", () => {
  const { stream, calls, greetings, errors } = made();
  greetings.push("watch");
  stream.tell("watch");
  calls[0]!.emit("data", { id: "", error: errorOf(refusal(Code.NOT_FOUND, "NOT_FOUND")) });
  assert.deepEqual(errors.map(({ reason }) => reason), ["NOT_FOUND"]);
  stream.close();
});
