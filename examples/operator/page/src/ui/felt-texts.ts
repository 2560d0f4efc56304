/** The words on a felt. They are the player's, except at a casino whose felt is lettered in one language (F-13). */

import type { TextsByGame } from "../model/texts.js";
import type { Catalog, Game } from "../model/types.js";
import { api } from "../state/api.js";
import type { Store } from "../state/store.js";
import { loadWords, type Words } from "../words/index.js";

/** By ruleset: the language in which the table's felt is lettered (S3). */
const LETTERED: Record<string, string> = { "uth-lugano": "en" };

export interface FeltTexts {
  words: Words;
  texts: TextsByGame;
}

const loaded = new Map<string, FeltTexts>();
const loading = new Set<string>();

/** Until the words of another language are there, the player's own are shown. */
export function feltTexts(store: Store, game: Game): FeltTexts {
  const language = LETTERED[game.ruleset.id] ?? store.language;
  const other = language === store.language ? undefined : loaded.get(language);
  if (language !== store.language && !other && !loading.has(language)) void load(store, language);
  return other ?? { words: store.words, texts: store.texts };
}

async function load(store: Store, language: string): Promise<void> {
  loading.add(language);
  try {
    const [words, { texts = {} }] = await Promise.all([
      loadWords(language),
      api<Catalog>("GET", `/api/catalog?language=${language}`),
    ]);
    loaded.set(language, { words, texts: texts as TextsByGame });
    store.emit();
  } catch (error) {
    loading.delete(language);
    store.fail(error);
  }
}
