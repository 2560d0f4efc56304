/** What a check has looked at, for a page that shows the steps. A replay of a whole export keeps none of it. */

export interface Looked {
  readonly [name: string]: string;
}

/** Called when a check holds, with the bytes and hashes that it compared; made only where somebody listens. */
export type Trace = (step: StepName, looked: () => Looked) => void;

/** The steps in the order in which they are shown. */
export const STEPS = [
  "statements",
  "keys",
  "root",
  "instance",
  "session_open",
  "table_round",
  "table_seats",
  "table_deal",
  "opening",
  "rules",
  "path",
  "stakes",
  "free_bet",
  "event",
  "table_final",
  "final",
  "order",
  "answer",
  "commitment",
  "transcript",
  "cards",
  "windows",
  "actions",
  "hands",
  "settlement",
  "balance",
  "void",
  "log",
] as const;
export type StepName = (typeof STEPS)[number];
