/** The document was hidden or is closing while bets were open (F-8): they are taken back, and the page says what is true. */

import { RequestError } from "../model/connection.js";
import type { Store } from "./store.js";
import type { TablePlay } from "./table.js";

const AGAIN_MS = 1000;

/**
 * Asks the bridge to take back the open bets of this page, until nothing is open any more. While the connection is lost
 * the request waits; no bet is placed meanwhile.
 */
export async function takeBack(store: Store): Promise<void> {
  let plays = store.tables.filter((play) => play.mayBeTakenBack);
  if (!plays.length) return;
  const rounds = new Map(plays.map((play) => [play, play.seat?.round?.round_id]));
  for (const play of plays) play.takingBack = true;
  store.emit();
  while (!(await asked(store, plays))) {
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    plays = plays.filter((play) => store.tables.includes(play));
  }
  if (!plays.length) return;
  for (const play of plays) play.tookBack();
  const stand = (play: TablePlay): boolean => {
    const now = play.seat?.round?.round_id;
    return Boolean(play.seat?.bets?.length) || (now !== undefined && now !== rounds.get(play));
  };
  store.notice = store.t(plays.some(stand) ? "hidden.stand" : "hidden");
  store.announce(store.notice);
}

/** Asks once. Whether no bets are open now, as far as the tables themselves say. */
async function asked(store: Store, plays: readonly TablePlay[]): Promise<boolean> {
  try {
    await store.link.request("hidden");
    await Promise.all(plays.map(async (play) => play.read()));
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return false;
  }
  return !plays.some((play) => play.isStating || play.hasOpenBets);
}
