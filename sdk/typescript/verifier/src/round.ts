/** `verifyRound`: one round of one seat, from its signed statements alone, as an ordered list of steps. */

import { ascii, hex, unhex, utf8, type Bytes } from "./bytes.js";
import { Fault, type CheckNo } from "./checks.js";
import { has, objectAt, objectsAt, text, textOr, type JsonObject } from "./json.js";
import { KeyBook } from "./keys.js";
import { parseLine, type Line } from "./lines.js";
import { parseLogProof, parsePolicy, verifyCheckpoint, type LogProof, type Policy } from "./log.js";
import { rootOfPath } from "./merkle.js";
import { demandLog, LogError, parseCheckpoint } from "./note.js";
import { claimsOf, isOfRounds, ordered, type Claims } from "./order.js";
import { isDebit } from "./replay/freebets.js";
import { Replay } from "./replay/replay.js";
import { Rulebook, shippedRules } from "./rules.js";
import { kindOf, parseEnvelope, type Envelope, type Statement } from "./statements.js";
import { STEPS, type Looked, type StepName } from "./trace.js";

export type StepVerdict = "ok" | "failed" | "unpinned" | "skipped";

/** One thing that was looked at. */
export interface Step {
  readonly step: StepName;
  readonly verdict: StepVerdict;
  /** The code of a sentence about it: the step and the verdict, such as COMMITMENT_OK. */
  readonly code: string;
  /** The check of docs/verify.md that failed. */
  readonly check: CheckNo | null;
  /** What is wrong, in English; "" where nothing is. */
  readonly message: string;
  /** The bytes and hashes that were compared, by name. */
  readonly looked: Looked;
}

export interface RoundInput {
  /** The key bundle, or the envelopes of its statements. */
  readonly keys: Bytes | string | readonly (Bytes | string)[];
  /**
   * Envelopes or export lines: the instance_start of each signing instance, opening and final; of a seat at a table also
   * table_round, table_deal, table_final; where they are at hand session_open, transfers, free_bets and events of the
   * round. Other statements of a session, as a dispute has them, are passed over.
   */
  readonly statements: readonly (Bytes | string)[];
  /** Of a seat at a table: its path, hashes in hex, where no export line has it. */
  readonly path?: readonly string[];
  /** `.tlog-proof` files of some of the statements: one of another statement fails the round. */
  readonly proofs?: readonly (Bytes | string)[];
  /** Which round, where the statements are of several. */
  readonly roundId?: string;
}

export interface RoundOptions {
  /** The fingerprint of the root, brought by another way than the statements. */
  readonly root?: string;
  /** Whom you trust about the log (C2SP tlog-policy). Without it nothing shows who signed the checkpoints of proofs. */
  readonly policy?: string;
  readonly rulesets?: readonly string[];
  readonly jurisdictions?: readonly string[];
}

export interface RoundReport {
  /**
   * `verified`: no check failed, and the final is there; `open`: no check failed, and it is not there yet; `refused`: a
   * statement is of a kind that this verifier does not know.
   */
  readonly verdict: "verified" | "open" | "failed" | "refused";
  /** Whether the keys lead to the root that was pinned. */
  readonly isAnchored: boolean;
  readonly root: string;
  /** Whether a key on the path is marked as not for real money. */
  readonly isDevelopment: boolean;
  /** Whether the session is played with play money; null where no session_open says. */
  readonly isDemo: boolean | null;
  /**
   * Why the round is void; "" where it is not. After DECK_UNRECOVERABLE no card is shown: that the stakes were returned is
   * all that was verified.
   */
  readonly voidReason: string;
  readonly roundId: string;
  readonly sessionId: string;
  readonly steps: readonly Step[];
}

const STEP_OF_KIND: { readonly [kind: string]: StepName } = {
  ...{ instance_start: "instance", round_opening: "opening", seat_opening: "opening", transfer: "order" },
  ...{ round_final: "final", seat_final: "final", session_open: "session_open", event: "event", free_bet: "free_bet" },
  ...{ table_round: "table_round", table_seats: "table_seats", table_deal: "table_deal", table_final: "table_final" },
};
const STEP_OF_CHECK: { readonly [check: number]: StepName } = {
  ...{ 5: "session_open", 6: "order", 7: "order", 8: "rules", 9: "path", 10: "stakes", 11: "answer" },
  ...{ 12: "commitment", 13: "transcript", 14: "cards", 15: "actions", 16: "hands", 17: "settlement", 18: "balance" },
  ...{ 19: "void", 20: "order", 21: "order", 22: "order", 23: "order", 24: "order", 25: "table_deal", 26: "windows" },
  ...{ 27: "windows", 28: "path" },
};
/** Statements whose place in the log is missed where no proof shows it. */
const LOGGED = /^(?:table_round|table_deal|table_final|.*_opening|(?:round|seat)_final)$/;
/** What is due once there is a final. */
const AFTER_FINAL: readonly StepName[] = ["answer", "commitment", "transcript", "cards", "actions", "balance"];
const SETTLED: readonly StepName[] = ["hands", "settlement"];

interface Read {
  readonly envelope: Envelope;
  readonly line: Line;
  readonly kind: string;
  readonly claims: Claims;
}

class Steps {
  private readonly found = new Map<StepName, Step>();

  ok(step: StepName, looked: Looked): void {
    const before = this.found.get(step);
    if (before && before.verdict !== "ok") return;
    const merged = before ? { ...before.looked, ...renamed(looked, before.looked) } : looked;
    this.found.set(step, make(step, "ok", { looked: merged }));
  }

  fail(step: StepName, fault: { readonly check: CheckNo | null; readonly message: string }, looked: Looked = {}): void {
    const before = this.found.get(step);
    if (before?.verdict === "failed") return;
    const { check, message } = fault; // of an Error the message is no own property that a spread would take
    this.found.set(step, make(step, "failed", { check, message, looked: { ...before?.looked, ...looked } }));
  }

  put(step: StepName, verdict: StepVerdict, message: string, looked: Looked): void {
    this.found.set(step, make(step, verdict, { message, looked }));
  }

  /** Says what a step that holds so far does not show. */
  skip(step: StepName, message: string): void {
    const before = this.found.get(step);
    if (before?.verdict !== "failed") this.put(step, "skipped", message, before?.looked ?? {});
  }

  has(step: StepName): boolean {
    return this.found.has(step);
  }

  get list(): readonly Step[] {
    return STEPS.flatMap((step) => this.found.get(step) ?? []);
  }
}

/** Names that are taken get a number: of several instances each is shown. */
function renamed(looked: Looked, taken: Looked): Looked {
  return Object.fromEntries(
    Object.entries(looked).map(([name, value]) => {
      let free = name;
      for (let count = 2; taken[free] !== undefined && taken[free] !== value; count += 1) free = `${name}_${count}`;
      return [free, value];
    }),
  );
}

function make(step: StepName, verdict: StepVerdict, more: Partial<Step>): Step {
  const code = `${step}_${verdict}`.toUpperCase();
  return { step, verdict, code, check: null, message: "", looked: {}, ...more };
}

/** The statements of one input: an envelope by itself, or an export line. */
function readOne(data: Bytes | string, path: readonly string[] | undefined): Read {
  const document = (typeof data === "string" ? data : (ascii(data) ?? "")).replace(/\n$/, "");
  const isLine = document.startsWith('{"envelope":');
  const line = isLine ? parseLine(utf8(document)) : { envelope: utf8(document), path: null, private: null };
  const envelope = parseEnvelope(line.envelope);
  const kind = kindOf(envelope.type)?.name ?? "";
  const hasPath = kind === "seat_opening" && path !== undefined;
  return { envelope, kind, claims: claimsOf(kind, envelope), line: hasPath ? { ...line, path: path.map(unhexHash) } : line };
}

function unhexHash(hash: string): Bytes {
  if (!/^[0-9a-f]{64}$/.test(hash)) throw new Fault(1, "a hash of the path is not 64 lowercase hex digits");
  return unhex(hash);
}

/** Which round and session a statement concerns: "" where it concerns none. */
function concerns(kind: string, body: JsonObject): { readonly round: string; readonly session: string } {
  const round = kind === "round_opening" ? text(objectAt(body, "deal"), "round_id") : textOr(body, "round_id");
  return { round, session: textOr(body, "session_id") };
}

/** Verifies one round. */
export async function verifyRound(input: RoundInput, options: RoundOptions = {}): Promise<RoundReport> {
  return new RoundVerifier(input, options).report();
}

class RoundVerifier {
  private readonly steps = new Steps();
  private book: KeyBook | null = null;
  private isDevelopment = false;
  private roundId: string;
  private sessionId = "";
  private opening: Statement | null = null;
  private final: Statement | null = null;
  private voidReason = "";
  private isDemo: boolean | null = null;
  /** What a campaign paid for the round, and what went back to it. */
  private debit: Statement | null = null;
  private credit: Statement | null = null;
  private isRefused = false;
  /** The statements of the round whose signatures verify. */
  private readonly shown: Read[] = [];

  constructor(
    private readonly input: RoundInput,
    private readonly options: RoundOptions,
  ) {
    this.roundId = input.roundId ?? "";
  }

  async report(): Promise<RoundReport> {
    const read = this.read();
    if (read && (await this.openKeys())) await this.replay(read);
    const steps = this.steps.list;
    const hasFailed = steps.some((step) => step.verdict === "failed");
    const isWhole = this.opening !== null && this.final !== null;
    const verdict = this.isRefused ? "refused" : hasFailed ? "failed" : isWhole ? "verified" : "open";
    return {
      verdict,
      steps,
      isAnchored: this.book?.isAnchored ?? false,
      root: this.book?.root ?? "",
      isDevelopment: this.isDevelopment,
      isDemo: this.isDemo,
      voidReason: this.voidReason,
      roundId: this.roundId,
      sessionId: this.sessionId,
    };
  }

  /** The statements in their order; null if one is refused. */
  private read(): readonly Read[] | null {
    const found: Read[] = [];
    for (const data of this.input.statements) {
      try {
        const one = readOne(data, this.input.path);
        if (one.kind === "") return this.refuse("this verifier does not know statements of this type", one.envelope.type);
        if (isOfRounds(one.kind)) found.push(one); // a session's other statements say nothing of a round
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        this.steps.fail("statements", error);
        return null;
      }
    }
    this.choose(found);
    return ordered(found, this.roundId, this.sessionId);
  }

  /** Takes the round and session of the first opening, or of that of the round asked for. */
  private choose(read: readonly Read[]): void {
    const openings = read.filter(({ kind, claims: { round } }) => kind.endsWith("_opening") && (this.roundId || round) === round);
    if (!openings[0]) return;
    const { round, session } = openings[0].claims;
    this.roundId = round;
    this.sessionId = session;
  }

  private refuse(message: string, type: string): null {
    this.isRefused = true;
    this.steps.fail("statements", { check: 3, message: `${message}: ${type}` }, { type });
    return null;
  }

  private async openKeys(): Promise<boolean> {
    const { keys } = this.input;
    const { root } = this.options;
    try {
      const isBundle = typeof keys === "string" || keys instanceof Uint8Array;
      const bytes = (data: Bytes | string): Bytes => (typeof data === "string" ? utf8(data) : data);
      this.book = isBundle ? await KeyBook.open(bytes(keys), root) : await KeyBook.of(keys.map(bytes), root);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      this.steps.fail("keys", error);
      return false;
    }
    const book = this.book;
    this.steps.ok("keys", { root: book.root, statements: String(book.bundle.length) });
    const looked = { root: book.root, pinned: root ?? "" };
    const words = "nobody has brought the fingerprint of the root: nothing shows whose keys these are";
    if (root === undefined) this.steps.put("root", "unpinned", words, looked);
    else if (book.isAnchored) this.steps.ok("root", looked);
    else this.steps.fail("root", { check: 3, message: `the root of the keys is ${book.root}, not ${root}` }, looked);
    return true;
  }

  private async replay(read: readonly Read[]): Promise<void> {
    const { options, book, steps } = this;
    const hasMore = (options.rulesets?.length ?? 0) + (options.jurisdictions?.length ?? 0) > 0;
    const rules = hasMore ? new Rulebook(options) : shippedRules();
    const trace = (step: StepName, looked: () => Looked): void => steps.ok(step, looked());
    const replay = new Replay(book!, rules, { trace, isPartial: true });
    for (const one of read) {
      const step = STEP_OF_KIND[one.kind]!;
      let statement: Statement;
      try {
        statement = await book!.verified(one.envelope);
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        steps.fail(step, error, { hash: hex(one.envelope.hash), keyid: one.envelope.keyid });
        continue;
      }
      if (!this.isOfRound(statement)) continue;
      this.isDevelopment ||= book!.isDevelopment(statement);
      steps.ok(step, looked(statement));
      this.shown.push(one);
      if (statement === this.credit && !this.debit) continue; // there is nothing to compare it with
      const faults = replay.feedVerified(statement, one.line);
      for (const fault of faults) steps.fail(one.kind === "free_bet" ? step : STEP_OF_CHECK[fault.check] ?? "order", fault);
      if (one.kind.endsWith("_final") && faults.length === 0 && one.kind !== "table_final") {
        steps.ok("answer", { opening: textOr(statement.body, "opening") });
      }
    }
    this.missing();
    await this.inLog();
  }

  /**
   * Each proof leads from one of the round's statements to its checkpoint, which the policy's quorum has seen. Without a
   * policy a proof that leads nowhere fails as well; nothing shows then who signed the checkpoint.
   */
  private async inLog(): Promise<void> {
    const { proofs = [] } = this.input;
    const { policy: trusted } = this.options;
    const missing = new Set(this.shown.filter(({ kind }) => LOGGED.test(kind)));
    try {
      const policy = trusted === undefined ? null : parsePolicy(trusted);
      for (const data of proofs) {
        const proof = parseLogProof(typeof data === "string" ? utf8(data) : data);
        const { entry, seen } = await this.included(proof, policy);
        missing.delete(entry);
        this.steps.ok("log", seen);
      }
    } catch (error) {
      if (!(error instanceof LogError)) throw error;
      return this.steps.fail("log", { check: null, message: error.message });
    }
    const without = [...missing].map(({ kind }) => kind).join(", ");
    if (proofs.length === 0) this.steps.skip("log", "no proof is given that the log holds the statements");
    else if (trusted === undefined) {
      this.steps.skip("log", "no policy says whom to trust about the log: nothing shows who signed the checkpoint of the proofs");
    } else if (without) this.steps.skip("log", `no proof is given that the log holds ${without}`);
  }

  private async included(proof: LogProof, policy: Policy | null): Promise<{ readonly entry: Read; readonly seen: Looked }> {
    const witnessed = policy && (await verifyCheckpoint(proof.note, policy));
    const { origin, size, root } = witnessed ? witnessed.checkpoint : parseCheckpoint(proof.note.text);
    const entry = this.shown.find(({ envelope }) => {
      const found = rootOfPath(envelope.hash, proof.index, size, proof.path);
      return found !== null && hex(found) === hex(root);
    });
    demandLog(entry !== undefined, `no statement of the round is number ${proof.index} of the log ${origin}`);
    const place = {
      [entry.kind]: hex(entry.envelope.hash),
      index: String(proof.index),
      checkpoint: `${origin} ${size} ${hex(root)}`,
    };
    if (!witnessed || !policy) return { entry, seen: place };
    demandLog(witnessed.hasQuorum, `the quorum ${policy.quorum} has not cosigned the checkpoint`);
    const cosigned = [...witnessed.cosignatures].map(([name, seconds]) => `${name} ${new Date(seconds * 1000).toISOString()}`);
    const trust = witnessed.isSelfWitnessed ? "SELF-WITNESSED" : "WITNESSED";
    return { entry, seen: { ...place, witnesses: cosigned.join(", "), witnessed: trust } };
  }

  /** Whether a statement is of the round in question. */
  private isOfRound(statement: Statement): boolean {
    const { kind, body } = statement;
    if (kind.name === "instance_start") return true;
    const { round, session } = concerns(kind.name, body);
    if (round !== "" && this.roundId !== "" && round !== this.roundId) return false;
    if (session !== "" && this.sessionId !== "" && session !== this.sessionId) return false;
    if (round !== "" && kind.name !== "event") this.roundId = round;
    if (kind.name.endsWith("_opening")) {
      this.opening = statement;
      this.sessionId = session;
    }
    if (kind.name === "session_open") this.isDemo = textOr(body, "mode") === "demo";
    if (kind.name === "free_bet" && isDebit(body)) this.debit = statement;
    if (kind.name === "free_bet" && !isDebit(body)) this.credit = statement;
    if (has(body, "void")) this.voidReason = text(objectAt(body, "void"), "reason");
    if (kind.name === "round_final" || kind.name === "seat_final") this.final = statement;
    return true;
  }

  /** Says what is missing, and what a failure has kept from being checked. */
  private missing(): void {
    if (!this.opening && !this.steps.has("opening")) {
      this.steps.fail("opening", { check: 11, message: "there is no opening of the round" });
    }
    if (this.credit && !this.debit) {
      this.steps.skip("free_bet", "what the campaign paid is not shown: the free_bet before the opening is not given");
    }
    if (!this.final) return;
    if (this.debit && !this.credit) {
      this.steps.skip("free_bet", "what went back to the campaign is not shown: the free_bet behind the final is not given");
    }
    const isSettled = text(this.final.body, "status") === "settled";
    for (const step of [...AFTER_FINAL, ...(isSettled ? SETTLED : ["void" as const])]) if (!this.steps.has(step)) this.steps.put(step, "skipped", "", {});
  }
}

function looked(statement: Statement): Looked {
  const { kind, body, envelope, hash } = statement;
  const said = SAID[kind.name]?.filter((name) => has(body, name)) ?? [];
  const more: Looked = Object.fromEntries(said.map((name) => [name, text(body, name)]));
  const limits = kind.name === "session_open" && has(body, "bet_limits") ? { bet_limits: limitsOf(body) } : {};
  const paid = kind.name === "free_bet" ? { [isDebit(body) ? "granted_minor" : "reclaimed_minor"]: text(body, "amount_minor") } : {};
  return { kind: kind.name, hash, keyid: envelope.keyid, instance: text(body, "instance"), time: text(body, "time"), ...more, ...limits, ...paid };
}

/** What a statement says that no step compares by itself. */
const SAID: { readonly [kind: string]: readonly string[] } = {
  instance_start: ["public_key", "node"],
  session_open: ["currency", "mode"],
  free_bet: ["campaign", "grant_id", "expiry_time"],
};

function limitsOf(body: JsonObject): string {
  const limits = objectsAt(body, "bet_limits");
  return limits.map((one) => `${text(one, "bet")} ${text(one, "min_minor")} to ${text(one, "max_minor")}`).join("; ");
}

