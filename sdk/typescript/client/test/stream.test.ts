/** Requests on a stream that breaks: what is sent again, in which order, how often; answers to their own requests. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import type { ClientDuplexStream } from "@grpc/grpc-js";
import { errorMadeHere, errorOf } from "../src/errors.js";
import { Code, DEFAULT_POLICY, OutcomeUnknownError, RgsError } from "../src/index.js";
import { RequestStream } from "../src/stream.js";
import { refusal } from "./refusal.js";

interface Answer {
  id: string;
  error?: RgsError;
  view?: boolean;
}

class FakeCall extends EventEmitter {
  readonly sent: string[] = [];
  isCancelled = false;

  write(message: string): boolean {
    this.sent.push(message);
    return true;
  }

  end(): void {}

  cancel(): void {
    this.isCancelled = true;
  }

  fail(code: Code): void {
    this.emit("error", errorMadeHere(code, "broken"));
  }
}

function made(policy: Partial<typeof DEFAULT_POLICY> = {}) {
  const calls: FakeCall[] = [];
  const greetings: string[] = [];
  const errors: RgsError[] = [];
  const views: Answer[] = [];
  const stream = new RequestStream<string, Answer>(
    {
      open: () => {
        const call = new FakeCall();
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
  const opened = async (count: number): Promise<FakeCall> => {
    while (calls.length < count) await new Promise((resolve) => setTimeout(resolve, 1));
    return calls[count - 1]!;
  };
  return { stream, calls, greetings, errors, views, opened };
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
  // The next request opens a stream anew.
  const later = stream.ask("B", "b");
  (await opened(4)).emit("data", { id: "b" });
  await later;
});

test("a watched stream that cannot be opened is given up, and says so", async () => {
  const { stream, greetings, errors, calls, opened } = made();
  greetings.push("watch");
  stream.tell("watch");
  for (let count = 1; count <= 3; count++) (await opened(count)).fail(Code.UNAVAILABLE);
  assert.equal(errors.length, 1);
  assert.equal(calls.length, 3);
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
