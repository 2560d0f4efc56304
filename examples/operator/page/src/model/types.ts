/**
 * The messages of the RGS as the bridge sends them: proto3 JSON with the fields' own names. A field at its default is
 * absent, int64 is a decimal string, bytes are base64, times are RFC 3339.
 */

export interface Bet {
  bet: string;
  amount_minor?: string;
}

export interface Hand {
  category?: string;
  cards?: string[];
}

export interface LegalAction {
  action: string;
  cost_minor?: string;
  available?: boolean;
  reason?: string;
}

export interface TakenAction {
  phase?: string;
  action?: string;
  amount_minor?: string;
  time?: string;
  by?: string;
}

export interface SettledBet {
  bet: string;
  stake_minor?: string;
  returned_minor?: string;
  result?: string;
  /** The row of the paytable that decided it, if a paytable did. */
  row?: string;
  /** The five cards that met the row. */
  cards?: string[];
}

export interface RoundView {
  round_id: string;
  game_code?: string;
  round_no?: string;
  round_version?: string;
  status?: string;
  phase?: string;
  hole_cards?: string[];
  dealer_cards?: string[];
  board?: string[];
  bets?: Bet[];
  legal_actions?: LegalAction[];
  actions?: TakenAction[];
  player_hand?: Hand;
  dealer_hand?: Hand;
  outcome?: string;
  dealer_qualifies?: boolean;
  settlement?: SettledBet[];
  staked_minor?: string;
  returned_minor?: string;
  start_time?: string;
  end_time?: string;
  deadline?: string;
  commitment?: string;
  actions_hash?: string;
  paused?: boolean;
  malfunction_code?: string;
  /** The free bet that pays ante and blind, what it pays, and what of that goes back to the campaign. */
  grant_id?: string;
  granted_minor?: string;
  reclaimed_minor?: string;
}

export interface FreeBet {
  grant_id: string;
  game?: string;
  currency?: string;
  campaign?: string;
  stake_minor?: string;
  expiry_time?: string;
}

export interface RulesRef {
  id: string;
  version?: string;
  sha256?: string;
}

export interface SessionLimits {
  loss_minor?: string;
  stake_minor?: string;
  duration_ms?: string;
}

export interface SessionView {
  session_id: string;
  status?: string;
  ruleset?: RulesRef;
  game_name?: string;
  jurisdiction?: RulesRef;
  currency?: string;
  player?: string;
  regulator_session_id?: string;
  regulator_participation_id?: string;
  test_regulator?: boolean;
  participation_id?: string;
  participation_ended?: boolean;
  balance_minor?: string;
  bought_minor?: string;
  staked_minor?: string;
  returned_minor?: string;
  paid_out_minor?: string;
  net_position_minor?: string;
  elapsed_ms?: string;
  open_time?: string;
  close_time?: string;
  next_round_no?: string;
  next_purchase_no?: string;
  largest_ante_minor?: string;
  purchase_left_minor?: string;
  open_round?: RoundView;
  limits?: SessionLimits;
  loss_left_minor?: string;
  stake_left_minor?: string;
  time_left_ms?: string;
  inactive_time?: string;
  funding?: string;
  pending?: { kind?: string; last_reason?: string };
  wallet_balance_minor?: string;
  table?: string;
  reserved_minor?: string;
  /** No round may start before it. */
  next_start_time?: string;
  mode?: string;
  /** Where the operator wants the player to go who leaves the page. */
  return_url?: string;
  /** Of two views the one with the higher version is the later one. */
  session_version?: string;
}

export interface BoxView {
  box?: number;
  nickname?: string;
  session_id?: string;
  bets?: Bet[];
  in_round?: boolean;
  decided?: boolean;
  hole_cards?: string[];
  reserved?: boolean;
}

export interface TableView {
  table: string;
  version?: string;
  state?: string;
  paused_from?: string;
  phase?: string;
  round_id?: string;
  table_round_no?: string;
  game_code?: string;
  open_time?: string;
  amber_time?: string;
  deadline?: string;
  time?: string;
  hole_cards?: string[];
  board?: string[];
  dealer_cards?: string[];
  dealer_hand?: Hand;
  player_hand?: Hand;
  dealer_qualifies?: boolean;
  boxes?: BoxView[];
  players_at_least?: string;
  malfunction_code?: string;
}

export interface SeatView {
  session_id: string;
  table?: string;
  box?: number;
  device_no?: number;
  seat_version?: string;
  bets?: Bet[];
  reserved_minor?: string;
  round?: RoundView;
  ended?: string;
}

export interface ChatLine {
  message_id: string;
  table?: string;
  time?: string;
  nickname?: string;
  text?: string;
  code?: string;
  is_own?: boolean;
}

export interface TableEntry {
  table: string;
  names?: Record<string, string>;
  game?: string;
  currency?: string;
  limits?: { bet: string; min_minor?: string; max_minor?: string }[];
  state?: string;
  players_at_least?: string;
  boxes?: number;
  boxes_free?: number;
  tables_beside?: boolean;
  chat?: boolean;
  betting_ms?: string;
  amber_ms?: string;
  decision_ms?: string;
  hours_change_time?: string;
}

export interface BetLimits {
  bet: string;
  min_minor?: string;
  max_minor?: string;
  step_minor?: string;
  required?: boolean;
}

export interface Paytable {
  bet: string;
  rows?: { category: string; pays: string }[];
}

export interface Game {
  ruleset: RulesRef;
  family: string;
  name?: string;
  table_only?: boolean;
  seats_max?: number;
  limits?: BetLimits[];
  paytables?: Paytable[];
  dealer_qualifies_with?: string;
  rules?: string[];
  returns?: { name: string; percent: string; basis: string; names?: Record<string, string> }[];
  /** Base64 of the canonical ruleset. */
  canonical?: string;
  currency?: string;
}

export interface Links {
  cashier?: string;
  responsible_play?: string;
  help?: string;
}

/** What the regulator's rules say; the page switches off what they forbid. */
export interface Jurisdiction {
  id?: string;
  languages?: string[];
  currencies?: { currency: string; exponent?: number }[];
  tables_max?: number;
  min_round_interval_ms?: string;
  reality_check_ms?: string;
  repeat_allowed?: boolean;
  skip_animations_allowed?: boolean;
  demo_allowed?: boolean;
  early_close_allowed?: boolean;
  [more: string]: unknown;
}

export interface Catalog {
  games?: Game[];
  tables?: TableEntry[];
  texts?: Record<string, unknown>;
  jurisdiction?: Jurisdiction;
  links?: Links;
}

export interface AccountBalance {
  currency: string;
  exponent: number;
  amount_minor: string;
}

export interface Me {
  name: string;
  nickname?: string;
  player?: string;
  language?: string;
  settings?: Record<string, unknown>;
  balances?: AccountBalance[];
  /** The currency of the first account. */
  currency?: string;
  limits?: Record<string, string>;
  pending_limits?: Record<string, string>[];
  excluded_until?: string | null;
  links?: Links;
}

export interface RoundSummary {
  round_id: string;
  session_id?: string;
  game?: string;
  game_code?: string;
  status?: string;
  start_time?: string;
  end_time?: string;
  staked_minor?: string;
  returned_minor?: string;
  currency?: string;
  regulator_session_id?: string;
  regulator_participation_id?: string;
}

export interface RoundRecord {
  summary?: RoundSummary;
  round?: RoundView;
  opening?: string;
  final?: string;
  path?: string[];
  table_round?: string;
  table_deal?: string;
  table_final?: string;
}

/** An int64 of the JSON; absent is 0. */
export function int(value: string | undefined): bigint {
  return value === undefined ? 0n : BigInt(value);
}

/** The name of an enum's value without the enum's own name: `PHASE_FLOP` is `FLOP`. */
export function bare(value: string | undefined, prefix: string): string {
  if (value === undefined) return "";
  return value.startsWith(prefix) ? value.slice(prefix.length) : value;
}
