/** Reality checks that the player has to see: one for each session that is due, shown one behind the other. */

import { RequestError } from "../model/connection.js";
import type { Store } from "./store.js";

export interface RealityCheck {
  session_id: string;
  elapsed_ms?: string;
  staked_minor?: string;
  returned_minor?: string;
  net_position_minor?: string;
  currency?: string;
}

export class RealityChecks {
  private due: RealityCheck[] = [];

  constructor(private readonly store: Store) {}

  /** The one to show now. */
  get shown(): RealityCheck | undefined {
    return this.due[0];
  }

  /** A check is due. A later one of the same session takes the place of the first. */
  tell(check: RealityCheck): void {
    const known = this.due.some((each) => each.session_id === check.session_id);
    this.due = known ? this.due.map((each) => (each.session_id === check.session_id ? check : each)) : [...this.due, check];
  }

  /** Seen on another page, or its session is gone. */
  drop(sessionId: string): void {
    this.due = this.due.filter((each) => each.session_id !== sessionId);
  }

  /** The bridge tells those that are still due anew. */
  clear(): void {
    this.due = [];
  }

  /** The player has seen the one that is shown. Said until it is answered: no round of the session starts before. */
  async seen(): Promise<void> {
    const { shown, store } = this;
    if (!shown) return;
    this.drop(shown.session_id);
    store.emit();
    try {
      await store.link.request("reality_check_seen", { session_id: shown.session_id });
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      store.fail(error);
    }
  }
}
