/** The verification, beside the page: a slow device plays on meanwhile. */

import type { Answer, Task } from "./protocol.js";
import { verifyReceipt } from "./receipt.js";
import { differences } from "./shown.js";
import { unconfirmed } from "./titles.js";

interface Scope {
  onmessage: ((event: MessageEvent<Task>) => void) | null;
  postMessage(answer: Answer): void;
}

const scope = globalThis as unknown as Scope;

scope.onmessage = (event) => {
  void answer(event.data).then((found) => scope.postMessage(found));
};

async function answer(task: Task): Promise<Answer> {
  const { number } = task;
  try {
    const verified = await verifyReceipt(task.receipt, { root: task.root, policy: "" });
    const found = task.isPinned || !task.root ? verified : unconfirmed(verified, task.root);
    const wrong = found.passed && task.shown ? differences(task.receipt, task.shown) : [];
    if (wrong.length) return { ...found, number, passed: false, check: "shown", message: wrong.join("; ") };
    if (found.passed && task.shown) {
      const step = { name: "shown", verdict: "ok" as const, looked: {}, message: "" };
      return { ...found, number, steps: [...found.steps, step] };
    }
    return { ...found, number };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    // The verifier itself has failed: that says nothing about the round.
    return { number, passed: false, incomplete: true, message, steps: [] };
  }
}
