/** The texts of the game in one language, as the API's GetTexts has them, by the contract's codes. */

export interface GameTexts {
  game_name?: string;
  dealer?: string;
  rules?: string[];
  bets?: Record<string, string>;
  actions?: Record<string, string>;
  outcomes?: Record<string, string>;
  not_qualified?: string;
  rows?: Record<string, string>;
  hands?: Record<string, string>;
  results?: Record<string, string>;
  phases?: Record<string, string>;
  round_statuses?: Record<string, string>;
  decided_by?: Record<string, string>;
  table_states?: Record<string, string>;
  seat_ends?: Record<string, string>;
  dealer_lines?: Record<string, string>;
  unavailable?: Record<string, string>;
  errors?: Record<string, string>;
  malfunctions?: Record<string, string>;
  operations?: Record<string, string>;
  modes?: Record<string, string>;
  pays?: Record<string, string>;
  return_bases?: Record<string, string>;
  /** What a decision that nobody took is called. */
  automatic_actions?: Record<string, string>;
  /** With places for `elapsed`, `staked`, `returned` and `net`. */
  reality_check?: string;
}

type Section = {
  [Key in keyof GameTexts]-?: NonNullable<GameTexts[Key]> extends Record<string, string> ? Key : never;
}[keyof GameTexts];

/** By game, with "" for what depends on no game. */
export type TextsByGame = Record<string, GameTexts>;

/**
 * The text for a code. A code that is not listed has the text of "", where its section has one (malfunctions); elsewhere
 * it is shown as it is: it is of a newer server.
 */
export function textOf(texts: TextsByGame, game: string, section: Section, code = ""): string {
  const [own, shared] = [texts[game]?.[section], texts[""]?.[section]];
  return own?.[code] ?? shared?.[code] ?? own?.[""] ?? shared?.[""] ?? code;
}

/** The text with a capital letter, where it begins a label or a button. */
export function labelOf(texts: TextsByGame, game: string, section: Section, code: string | undefined): string {
  return capital(textOf(texts, game, section, code));
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Errors are the same for every game. */
export function errorText(texts: TextsByGame, reason: string): string | undefined {
  for (const each of Object.values(texts)) {
    const text = each.errors?.[reason];
    if (text) return text;
  }
  return undefined;
}
