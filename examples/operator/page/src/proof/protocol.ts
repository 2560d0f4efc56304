/** What the page and the worker say to each other. */

/** Whom the player trusts; nothing where a text is empty. */
export interface Trust {
  /** The fingerprint of the root, hex. */
  root: string;
  /** The policy about the log (C2SP tlog-policy). */
  policy: string;
}

export interface Task {
  number: number;
  /** The receipt file of the round, as the platform gave it. */
  receipt: string;
  /** The fingerprint of the root that the keys have to lead to, hex; empty: none. */
  root: string;
  /** The player has brought that fingerprint; else this browser saw it first, and nobody has confirmed it. */
  isPinned: boolean;
  /** The round as the page showed it, as JSON: what was shown must be what was signed. */
  shown?: string;
}

export interface Step {
  name: string;
  verdict: "ok" | "failed" | "unpinned" | "skipped";
  /** What was compared, as text: hashes and bytes in hex, or canonical JSON. */
  looked: Readonly<Record<string, string>>;
  message: string;
}

export interface Answer {
  number: number;
  passed: boolean;
  /** Nothing is refuted, but something that is needed is not there yet. */
  incomplete?: boolean;
  /** A statement of a kind that the verifier does not know. */
  refused?: boolean;
  /** The keys lead to the root that was given. */
  anchored?: boolean;
  /** A key on the path is for development, not for real money. */
  development?: boolean;
  /** The session is one of play money. Absent where no statement of the file says which money it is. */
  demo?: boolean;
  root?: string;
  round?: string;
  /** The number and name of the check that failed. */
  check?: string;
  message?: string;
  steps: readonly Step[];
  /** Milliseconds that it took. */
  took?: number;
}
