/** A stream of gRPC that a test answers, and ends. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { Client, status as Code } from "@grpc/grpc-js";
import { errorMadeHere } from "../src/errors.js";

export class FakeCall<Message> extends EventEmitter {
  readonly sent: Message[] = [];
  isCancelled = false;

  write(message: Message): boolean {
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

/** A connection whose streams are such calls, in the order in which they were opened. */
export function fakeClient<Message>(): { client: Client; calls: FakeCall<Message>[] } {
  const calls: FakeCall<Message>[] = [];
  const makeBidiStreamRequest = () => {
    const call = new FakeCall<Message>();
    calls.push(call);
    return call;
  };
  return { client: { makeBidiStreamRequest } as unknown as Client, calls };
}

/** Call number `count`, when it has been opened. */
export async function opened<Message>(calls: readonly FakeCall<Message>[], count: number): Promise<FakeCall<Message>> {
  const end = Date.now() + 10_000;
  while (calls.length < count && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 1));
  assert.ok(calls.length >= count, `${calls.length} streams were opened, not ${count}`);
  return calls[count - 1]!;
}
