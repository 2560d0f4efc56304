/** The page's own words. The texts of the games come from the API. */

import type { Key } from "./en.js";

export type WordKey = Key;
export type Table = Record<Key, string>;

export class Words {
  constructor(
    readonly language: string,
    private readonly table: Table,
  ) {}

  has(key: string): boolean {
    return key in this.table;
  }

  /** The words with their placeholders filled. */
  get(key: Key, values: Record<string, string | number> = {}): string {
    return filled(this.table[key], values);
  }
}

/** A text with its placeholders filled. */
export function filled(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

const LOADERS: Record<string, () => Promise<Table>> = {
  en: async () => (await import("./en.js")).default,
  it: async () => (await import("./it.js")).default,
  de: async () => (await import("./de.js")).default,
};

export async function loadWords(language: string): Promise<Words> {
  const loader = LOADERS[language] ?? LOADERS["en"];
  if (!loader) throw new Error(`no words for the language ${language}`);
  return new Words(language, await loader());
}
