/** The numbered checks of docs/verify.md, and the fault that names one of them. */

export const CHECKS = {
  1: "line",
  2: "envelope",
  3: "key",
  4: "schema",
  5: "private",
  6: "number",
  7: "session",
  8: "rules",
  9: "deal",
  10: "stakes",
  11: "opening",
  12: "commitment",
  13: "transcript",
  14: "cards",
  15: "actions",
  16: "hands",
  17: "settlement",
  18: "balance",
  19: "void",
  20: "draws",
  21: "instance",
  22: "scope",
  23: "ids",
  24: "table",
  25: "table deal",
  26: "windows",
  27: "early",
  28: "seats",
} as const;

export type CheckNo = keyof typeof CHECKS;

/** A check that failed, in words. */
export class Fault extends Error {
  constructor(
    readonly check: CheckNo,
    message: string,
  ) {
    super(message);
    this.name = "Fault";
  }

  /** Number and name, as `certify replay` prints them. */
  get label(): string {
    return `${this.check} ${CHECKS[this.check]}`;
  }
}

/** Fails the check unless `holds`. */
export function demand(holds: boolean, check: CheckNo, message: string): asserts holds {
  if (!holds) throw new Fault(check, message);
}
