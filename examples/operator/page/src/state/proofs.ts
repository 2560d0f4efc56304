/** The proof of each round that ended on this page: fetched, then verified in a worker, against a root pinned here. */

import { RequestError } from "../model/connection.js";
import { isOver } from "../model/rules.js";
import type { RoundView } from "../model/types.js";
import type { Answer, Task } from "../proof/protocol.js";
import { workerUrl } from "../proof/start.js";
import { api } from "./api.js";
import type { Play } from "./play.js";
import type { Store } from "./store.js";

/** `first_use`: everything agrees, and the root is the one that this browser saw first: nobody has vouched for it. */
export type ProofKind = "checking" | "proved" | "first_use" | "failed" | "unavailable";

export interface Proof {
  state: ProofKind;
  answer?: Answer;
  /** Why nothing was verified. */
  why?: string;
}

interface Keys {
  root_fingerprint?: string;
}

const PINNED = "root";
const FIRST = "root-first-use";
const KEPT = 50;
/** The final of a table's seat may be a moment away when its result is shown. */
const TRIES_MS = [0, 400, 1200, 3000];

export class Proofs {
  private readonly byRound = new Map<string, Proof>();
  private worker: Worker | undefined;
  private keys: Promise<Keys> | undefined;
  private readonly asked = new Map<number, (answer: Answer) => void>();
  private number = 0;

  constructor(private readonly store: Store) {}

  of(roundId: string): Proof | undefined {
    return this.byRound.get(roundId);
  }

  /** The fingerprint that the player has typed; empty where the first one seen is taken. */
  get pinned(): string {
    return localStorage.getItem(PINNED) ?? "";
  }

  /** The fingerprint that this browser saw first. */
  get firstSeen(): string {
    return localStorage.getItem(FIRST) ?? "";
  }

  pin(fingerprint: string): void {
    const text = fingerprint.replace(/[\s:]/g, "").toLowerCase();
    if (text) localStorage.setItem(PINNED, text);
    else localStorage.removeItem(PINNED);
    this.byRound.clear();
    this.store.emit();
  }

  start(play: Play, round: RoundView): void {
    if (isOver(round)) void this.verify(round.round_id, play.id, round);
  }

  /** Fetches the receipt of a round and verifies it. */
  async verify(roundId: string, sessionId: string, shown?: RoundView): Promise<Proof> {
    const known = this.byRound.get(roundId);
    if (known && known.state !== "unavailable") return known;
    this.set(roundId, { state: "checking" });
    let proof: Proof;
    try {
      proof = await this.run(roundId, sessionId, shown);
    } catch (error) {
      const why = error instanceof RequestError ? this.store.errorWords(error) : String(error);
      proof = { state: "unavailable", why };
    }
    this.set(roundId, proof);
    if (proof.state === "failed") this.store.announce(this.store.t("proof.failed"));
    return proof;
  }

  private async run(roundId: string, sessionId: string, shown?: RoundView): Promise<Proof> {
    let last: Proof = { state: "unavailable" };
    for (const wait of TRIES_MS) {
      if (wait) await new Promise((resolve) => setTimeout(resolve, wait));
      const path = `/api/receipts/${encodeURIComponent(roundId)}?session_id=${encodeURIComponent(sessionId)}`;
      const receipt = await api<Record<string, unknown>>("GET", path);
      const { root_fingerprint = "" } = await this.loadKeys();
      const answer = await this.ask({
        receipt: JSON.stringify(receipt),
        root: this.pinned || this.firstUse(root_fingerprint),
        isPinned: Boolean(this.pinned),
        ...(shown ? { shown: JSON.stringify(shown) } : {}),
      });
      if (answer.passed) {
        // Without a root from anybody, the first one seen is the key bundle's own.
        if (!this.pinned && !this.firstSeen && answer.root) localStorage.setItem(FIRST, answer.root);
        return { state: this.pinned ? "proved" : "first_use", answer };
      }
      // A kind of statement that this verifier does not know: nothing is said about the round, for or against.
      last = answer.incomplete || answer.refused ? { state: "unavailable", answer, why: answer.message ?? "" } : { state: "failed", answer };
      if (!answer.incomplete) break;
    }
    return last;
  }

  /** Trust on first use: what the operator states counts once, and then it may not change. */
  private firstUse(stated: string): string {
    if (!this.firstSeen && stated) localStorage.setItem(FIRST, stated.toLowerCase());
    return this.firstSeen;
  }

  private loadKeys(): Promise<Keys> {
    this.keys ??= api<Keys>("GET", "/api/keys").catch((error: unknown) => {
      this.keys = undefined;
      throw error;
    });
    return this.keys;
  }

  private ask(task: Omit<Task, "number">): Promise<Answer> {
    this.worker ??= this.begin();
    const number = (this.number += 1);
    return new Promise((resolve) => {
      this.asked.set(number, resolve);
      this.worker?.postMessage({ ...task, number });
    });
  }

  private begin(): Worker {
    const worker = new Worker(workerUrl() as unknown as URL, { type: "module" });
    worker.onmessage = (event: MessageEvent<Answer>) => {
      this.asked.get(event.data.number)?.(event.data);
      this.asked.delete(event.data.number);
    };
    worker.onerror = () => {
      for (const [number, resolve] of this.asked) resolve({ number, passed: false, incomplete: true, message: "worker", steps: [] });
      this.asked.clear();
      this.worker = undefined;
    };
    return worker;
  }

  private set(roundId: string, proof: Proof): void {
    this.byRound.delete(roundId);
    this.byRound.set(roundId, proof);
    const [oldest] = this.byRound.keys();
    if (this.byRound.size > KEPT && oldest) this.byRound.delete(oldest);
    this.store.emit();
  }
}
