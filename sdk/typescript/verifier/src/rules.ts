/** Rulesets and jurisdictions (docs/formats.md 15), read from their canonical forms and known by their hashes. */

import { utf8 } from "./bytes.js";
import { JURISDICTIONS } from "./data/jurisdictions.js";
import { RULESETS } from "./data/rulesets.js";
import { text, type JsonObject } from "./json.js";
import { sha256Hex } from "./sha2.js";

/** A value of a ruleset's document; unlike statements it has integers. */
type Value = string | number | boolean | readonly Value[] | Table;
interface Table {
  readonly [key: string]: Value;
}

export type Bet = "ante" | "blind" | "trips" | "play" | "aa" | "call";
export type Part = "player" | "dealer" | "burn" | "flop" | "turn" | "river";

export interface Ruleset {
  readonly id: string;
  readonly version: string;
  readonly sha256: string;
  readonly game: "ultimate_texas_holdem" | "casino_holdem";
  readonly isTableOnly: boolean;
  /** 0 where there is no limit. */
  readonly maxSeats: bigint;
  readonly isShared: boolean;
  readonly procedure: readonly (readonly [Part, number])[];
  /** The hand with which the dealer qualifies: `pair`, or `pair:4` and so on. */
  readonly qualify: string;
  readonly step: bigint;
  readonly paysSideBetAfterFold: boolean;
  readonly paytables: ReadonlyMap<string, ReadonlyMap<string, string>>;
  readonly limits: ReadonlyMap<string, { readonly min: bigint; readonly max: bigint }>;
  readonly defaults: ReadonlyMap<string, string>;
}

export interface Jurisdiction {
  readonly id: string;
  readonly version: string;
  readonly sha256: string;
  /** Of each currency that is allowed the cap of a participation. */
  readonly caps: ReadonlyMap<string, bigint>;
  readonly startInterval: number;
  readonly requiresIds: boolean;
  readonly allowsTestRegulator: boolean;
  readonly tablesMax: number;
  readonly allowsEarlyClose: boolean;
  readonly allowsFreeBets: boolean;
  readonly allowsPlayMoney: boolean;
}

export class RulesError extends Error {
  override name = "RulesError";
}

/** Python's form: sorted keys, no white space, other characters than ASCII escaped. */
function canonical(value: Value): string {
  if (typeof value === "string") {
    return JSON.stringify(value).replace(/[\u007f-\uffff]/g, (one) =>
      one === "\u007f" ? one : `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
  }
  if (typeof value !== "object") return String(value);
  if (isValues(value)) return `[${value.map(canonical).join(",")}]`;
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${canonical(key)}:${canonical(value[key]!)}`).join(",")}}`;
}

function isValues(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

class Rows {
  constructor(
    readonly name: string,
    readonly table: Table,
  ) {}

  text(key: string): string {
    const value = this.table[key];
    if (typeof value !== "string") throw this.fault(key, "a text");
    return value;
  }

  integer(key: string, absent?: number): number {
    const value = this.table[key] ?? absent;
    if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) throw this.fault(key, "a whole number");
    return value;
  }

  flag(key: string, absent?: boolean): boolean {
    const value = this.table[key] ?? absent;
    if (typeof value !== "boolean") throw this.fault(key, "true or false");
    return value;
  }

  texts(key: string): readonly string[] {
    const value = this.table[key];
    if (typeof value !== "object" || !isValues(value)) throw this.fault(key, "a list of texts");
    return value.map(String);
  }

  rows(key: string): Rows {
    const value = this.table[key];
    if (typeof value !== "object" || isValues(value)) throw this.fault(key, "a table");
    return new Rows(`${this.name}: ${key}`, value);
  }

  /** A list of tables. */
  list(key: string): readonly Rows[] {
    const value = this.table[key];
    if (typeof value !== "object" || !isValues(value)) throw this.fault(key, "a list of tables");
    return value.map((one) => {
      if (typeof one !== "object" || isValues(one)) throw this.fault(key, "a list of tables");
      return new Rows(`${this.name}: ${key}`, one);
    });
  }

  /** The names of the rows, each with what `read` makes of it. */
  map<T>(read: (rows: Rows, key: string) => T): Map<string, T> {
    return new Map(Object.keys(this.table).map((key) => [key, read(this, key)]));
  }

  fault(key: string, expected: string): RulesError {
    return new RulesError(`${this.name}: ${key} is not ${expected}`);
  }
}

function read(document: string, what: string): readonly [Rows, string] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(document);
  } catch {
    throw new RulesError(`${what} is no JSON. Give the canonical form (docs/formats.md 15), not the TOML file`);
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) throw new RulesError(`${what} is no object`);
  if (canonical(parsed as Table) !== document) throw new RulesError(`${what} is not in its canonical form`);
  return [new Rows(what, parsed as Table), sha256Hex(utf8(document))];
}

const PARTS: readonly string[] = ["player", "dealer", "burn", "flop", "turn", "river"];

function part(entry: string): readonly [Part, number] {
  const [name = "", count = ""] = entry.split(":");
  if (!PARTS.includes(name) || !/^[1-9]$/.test(count)) throw new RulesError(`deal_procedure: ${entry} is not known`);
  return [name as Part, Number(count)];
}

/** A ruleset from its canonical form. RulesError says what this verifier does not understand. */
export function parseRuleset(document: string): Ruleset {
  const [rows, sha256] = read(document, "a ruleset");
  const game = rows.text("game");
  if (game !== "ultimate_texas_holdem" && game !== "casino_holdem") throw new RulesError(`the game ${game} is not known`);
  const afterFold = rows.text(game === "casino_holdem" ? "aa_after_fold" : "trips_after_fold");
  return {
    id: rows.text("id"),
    version: String(rows.integer("version")),
    sha256,
    game,
    isTableOnly: rows.flag("table_only"),
    maxSeats: BigInt(rows.integer("max_seats")),
    isShared: rows.text("hole_cards") === "shared",
    procedure: rows.texts("deal_procedure").map(part),
    qualify: rows.text("qualify"),
    step: BigInt(rows.integer("step_minor")),
    paysSideBetAfterFold: afterFold === "paid",
    paytables: rows.rows("paytables").map((tables, key) => tables.rows(key).map((table, row) => table.text(row))),
    limits: rows.rows("limits").map((tables, key) => {
      const limit = tables.rows(key);
      return { min: BigInt(limit.integer("min_minor")), max: BigInt(limit.integer("max_minor")) };
    }),
    defaults: rows.rows("default_decisions").map((table, phase) => table.text(phase)),
  };
}

/** A jurisdiction from its canonical form. */
export function parseJurisdiction(document: string): Jurisdiction {
  const [rows, sha256] = read(document, "a jurisdiction");
  return {
    id: rows.text("id"),
    version: String(rows.integer("version")),
    sha256,
    caps: new Map((rows.table["currencies"] === undefined ? [rows] : rows.list("currencies")).map(cap)),
    startInterval: rows.integer("min_round_interval_ms"),
    requiresIds: rows.flag("regulator_ids_required"),
    allowsTestRegulator: rows.flag("test_regulator_allowed"),
    tablesMax: rows.integer("tables_max", 0),
    allowsEarlyClose: rows.flag("early_close_allowed", false),
    allowsFreeBets: rows.flag("free_bets_allowed", false),
    allowsPlayMoney: rows.flag("demo_allowed", false),
  };
}

/** A currency and its cap; before version 3 they stand among the other rows. */
function cap(rows: Rows): readonly [string, bigint] {
  return [rows.text("currency"), BigInt(rows.integer("participation_cap_minor"))];
}

/** The rules that a verifier knows, by id, version and hash. */
export class Rulebook {
  private readonly rulesets = new Map<string, Ruleset>();
  private readonly jurisdictions = new Map<string, Jurisdiction>();

  /** The shipped ones, and canonical forms of others. */
  constructor(more: { readonly rulesets?: readonly string[]; readonly jurisdictions?: readonly string[] } = {}) {
    for (const one of [...RULESETS, ...(more.rulesets ?? [])].map(parseRuleset)) this.rulesets.set(name(one), one);
    for (const one of [...JURISDICTIONS, ...(more.jurisdictions ?? [])].map(parseJurisdiction)) {
      this.jurisdictions.set(name(one), one);
    }
  }

  ruleset(reference: JsonObject): Ruleset | undefined {
    return this.rulesets.get(referred(reference));
  }

  jurisdiction(reference: JsonObject): Jurisdiction | undefined {
    return this.jurisdictions.get(referred(reference));
  }
}

function name(one: Ruleset | Jurisdiction): string {
  return `${one.id} ${one.version} ${one.sha256}`;
}

function referred(reference: JsonObject): string {
  return `${text(reference, "id")} ${text(reference, "version")} ${text(reference, "sha256")}`;
}

let shipped: Rulebook | undefined;

/** The rulebook without additions, made once. */
export function shippedRules(): Rulebook {
  shipped ??= new Rulebook();
  return shipped;
}
