/** What the player sets. It is stored with the profile and follows to every device (F-6). */

export interface Settings {
  sound: boolean;
  /** The dealer's voice and the sounds of the game are switched apart; `sound` switches both. */
  voice: boolean;
  effects: boolean;
  voice_volume: number;
  game_volume: number;
  chat: boolean;
  language: string;
  four_colour: boolean;
  motion: "full" | "reduced";
  theme: "auto" | "light" | "dark";
  keys: boolean;
}

export const STANDARD: Settings = {
  sound: true,
  voice: true,
  effects: true,
  voice_volume: 70,
  game_volume: 60,
  chat: true,
  language: "",
  four_colour: false,
  motion: "full",
  theme: "auto",
  keys: true,
};

export const LANGUAGES = ["it", "de", "en"];

/** The stored settings; what is missing or of another type is as usual. */
export function settingsOf(stored: Record<string, unknown> | undefined): Settings {
  const result: Record<string, unknown> = { ...STANDARD };
  for (const [key, usual] of Object.entries(STANDARD)) {
    const value = stored?.[key];
    if (typeof value === typeof usual) result[key] = value;
  }
  return result as unknown as Settings;
}

/** The language to begin with: that of the profile, else one of the browser's, else English. */
export function languageOf(stored: string | undefined, allowed: readonly string[], browser: readonly string[]): string {
  for (const wish of [stored ?? "", ...browser.map((each) => each.slice(0, 2))]) {
    if (allowed.includes(wish)) return wish;
  }
  return allowed.includes("en") ? "en" : (allowed[0] ?? "en");
}
