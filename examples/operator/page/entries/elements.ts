/**
 * The entry for pages of others: it defines all elements, under a name that stays (`elements.js`). An element that stands
 * alone gets its store from `storeOf`, which connects to nothing.
 */

import "../src/main.js";
import type { Catalog } from "../src/model/types.js";
import { Store } from "../src/state/store.js";
import { loadWords } from "../src/words/index.js";

export { Store };

/** A store with the words of a language ("en", "it", "de") and a catalog as `/api/catalog` answers. */
export async function storeOf(language: string, catalog: Catalog = {}): Promise<Store> {
  const store = new Store();
  store.words = await loadWords(language);
  store.catalog = catalog;
  return store;
}
