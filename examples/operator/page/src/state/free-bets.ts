/** The player's free bets: antes that a campaign of the operator pays. The platform lists those that can be played now. */

import { mayPlayFreeBets } from "../model/jurisdiction.js";
import type { FreeBet } from "../model/types.js";
import { api } from "./api.js";
import type { Store } from "./store.js";

export class FreeBets {
  list: FreeBet[] = [];

  constructor(private readonly store: Store) {}

  /** Those of one game, oldest first. */
  of(game: string): FreeBet[] {
    return this.list.filter((each) => each.game === game);
  }

  /** Asks for them anew. One that lies on the felt and is gone is taken away. */
  async load(): Promise<void> {
    const { store } = this;
    if (!mayPlayFreeBets(store.jurisdiction)) return;
    try {
      this.list = (await api<{ free_bets?: FreeBet[] }>("GET", "/api/free-bets")).free_bets ?? [];
    } catch (error) {
      store.fail(error);
    }
    const { solo } = store;
    if (solo?.freeBet && !this.list.some((each) => each.grant_id === solo.freeBet?.grant_id)) {
      const { note } = solo;
      solo.useFreeBet(undefined);
      solo.note = note;
    }
    store.emit();
  }

  clear(): void {
    this.list = [];
  }
}
