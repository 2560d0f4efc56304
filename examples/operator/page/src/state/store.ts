/** Everything the page knows, and the one place that talks to the platform. */

import { currencyOf, exponentOf } from "../model/accounts.js";
import type { Refusal } from "../model/betting.js";
import { ServerClock } from "../model/clock.js";
import { Connection, RequestError, type LinkState, type Message, type SocketLike } from "../model/connection.js";
import { languagesOf } from "../model/jurisdiction.js";
import { formatMoney, formatNet } from "../model/money.js";
import { textOf, type TextsByGame } from "../model/texts.js";
import type { Catalog, Game, Jurisdiction, Links, Me, RoundView, TableEntry, TableView } from "../model/types.js";
import { loadWords, Words, type WordKey } from "../words/index.js";
import { api } from "./api.js";
import { pushed } from "./pushed.js";
import type { Note, Play, Views } from "./play.js";
import { FreeBets } from "./free-bets.js";
import { Proofs } from "./proofs.js";
import { RealityChecks } from "./reality.js";
import { Sessions } from "./sessions.js";
import { languageOf, LANGUAGES, settingsOf, STANDARD, type Settings } from "./settings.js";
import type { SoloPlay } from "./solo.js";
import { Sound } from "./sound.js";
import type { TablePlay } from "./table.js";
import { errorWords, refusalNote, tellRound, tellTable } from "./tell.js";

export type Screen = "loading" | "sign-in" | "lobby" | "solo" | "tables" | "ended";
export type DialogName = "history" | "settings" | "rules" | "limits" | "proof" | "chat" | "lobby";

export interface Dialog {
  name: DialogName;
  play?: Play | undefined;
  round?: string | undefined;
  game?: string | undefined;
}

export class Store {
  words!: Words;
  settings: Settings = STANDARD;
  me: Me | undefined;
  catalog: Catalog = {};
  screen: Screen = "loading";
  dialog: Dialog | undefined;
  linkState: LinkState = "connecting";
  /** Why the page has ended: the code with which the bridge closed. */
  endCode = 0;
  lobby: TableEntry[] = [];
  solo: SoloPlay | undefined;
  tables: TablePlay[] = [];
  /** The table that keys go to, and that a phone shows. */
  front = 0;
  /** A line for the whole page, until it is closed. */
  notice = "";
  /** What the live region says. */
  spoken = "";
  link!: Connection;
  readonly clock = new ServerClock(() => performance.now());
  readonly sound = new Sound(() => this.settings);
  readonly proofs = new Proofs(this);
  readonly freeBets = new FreeBets(this);
  readonly sessions = new Sessions(this);
  readonly realityChecks = new RealityChecks(this);
  /** The account that games for one player are paid from; empty: the first one. */
  private chosen = "";
  /** Who shows the lobby: the page, a window over the tables. */
  private readonly lobbies = new Set<object>();
  private readonly listeners = new Set<() => void>();

  // --- words ---

  get language(): string {
    return this.words.language;
  }

  t(key: WordKey, values: Record<string, string | number> = {}): string {
    return this.words.get(key, values);
  }

  get texts(): TextsByGame {
    return (this.catalog.texts ?? {}) as TextsByGame;
  }

  get jurisdiction(): Jurisdiction {
    return this.catalog.jurisdiction ?? {};
  }

  get links(): Links {
    return this.catalog.links ?? this.me?.links ?? {};
  }

  exponent(currency: string): number {
    return exponentOf(this.me, this.jurisdiction, currency);
  }

  /** The currency that the player plays games for one player in. */
  get currency(): string {
    return currencyOf(this.me, this.chosen);
  }

  chooseCurrency(currency: string): void {
    this.chosen = currency;
    this.emit();
  }

  money(minor: bigint, currency: string): string {
    return formatMoney(minor, this.exponent(currency), currency, this.language);
  }

  net(minor: bigint, currency: string): string {
    return formatNet(minor, this.exponent(currency), currency, this.language);
  }

  errorWords(error: RequestError, currency = "EUR"): string {
    return errorWords(this, error, currency);
  }

  /** A refusal of the platform in words; anything else is a fault of the page. */
  wordsOf(error: unknown, currency = "EUR"): string {
    if (!(error instanceof RequestError)) throw error;
    return this.errorWords(error, currency);
  }

  refusalNote(refusal: Refusal, play: Play): Note {
    return refusalNote(this, refusal, play);
  }

  tellRound(play: Play, round: RoundView, was: RoundView | undefined): void {
    tellRound(this, play, round, was);
  }

  tellTable(play: TablePlay, table: TableView, was: TableView | undefined): void {
    if (play === this.current) tellTable(this, table, was);
  }

  tellDealer(play: TablePlay, code: string): void {
    const text = textOf(this.texts, play.game.ruleset.id, "dealer_lines", code);
    if (play === this.current) this.sound.say(text, this.language);
  }

  announce(text: string): void {
    // The same sentence again is a change for the live region only with another ending.
    this.spoken = text === this.spoken ? `${text}\u00a0` : text;
    this.sound.say(text, this.language);
    this.emit();
  }

  // --- listeners ---

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  emit(): void {
    for (const listener of this.listeners) listener();
  }

  // --- start and end ---

  async start(): Promise<void> {
    const kept = localStorage.getItem("language") ?? undefined;
    this.words = await loadWords(languageOf(kept, LANGUAGES, navigator.languages));
    this.emit();
    try {
      await this.enter();
    } catch (error) {
      this.fail(error);
      if (!(error instanceof RequestError) || error.reason === "SIGNED_OUT") return this.go("sign-in");
      this.endCode = error.reason === "EXCLUDED" ? 4001 : 0;
      this.go("ended");
    }
  }

  /** Signed in: profile, catalog, connection; then what was launched, or where the player was. */
  async enter(): Promise<void> {
    this.me = await api<Me>("GET", "/api/me");
    this.settings = settingsOf(this.me.settings);
    const wish = this.settings.language || this.me.language;
    await this.speak(languageOf(wish, LANGUAGES, [this.language]));
    this.notice = "";
    this.connect();
    await this.freeBets.load();
    const launch = /#launch=([^&]+)/.exec(location.hash)?.[1];
    // The token counts once and stands in no history.
    if (launch) history.replaceState(null, "", location.pathname === "/play" ? "/" : location.pathname);
    await this.sessions.begin(launch && decodeURIComponent(launch));
    if (this.screen === "loading" || this.screen === "sign-in") this.go("lobby");
  }

  private async speak(language: string): Promise<void> {
    if (this.words.language !== language) this.words = await loadWords(language);
    localStorage.setItem("language", language);
    document.documentElement.lang = language;
    if (this.me) {
      this.catalog = await api<Catalog>("GET", `/api/catalog?language=${language}`);
      this.lobby = this.catalog.tables ?? this.lobby;
      const [allowed] = this.allowedLanguages;
      // The jurisdiction knows other languages only.
      if (allowed && !this.allowedLanguages.includes(language)) return this.speak(allowed);
    }
    document.title = this.t("title");
    this.emit();
  }

  private connect(): void {
    const [navigation] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    this.link?.stop();
    this.link = new Connection(
      {
        open: (path) => new WebSocket(`${scheme}//${location.host}${path}`) as SocketLike,
        storage: sessionStorage,
        now: () => performance.now(),
        uuid: () => crypto.randomUUID(),
        random: Math.random,
        after: (ms, run) => setTimeout(run, ms),
        cancel: (timer) => clearTimeout(timer as number),
        visible: () => !document.hidden,
      },
      navigation?.type !== "reload",
    );
    this.link.onPong = (time, sent) => this.clock.heard(time, sent);
    this.link.onMessage = (message) => pushed(this, message);
    this.link.onLateAnswer = (request, message) => this.late(request, message);
    this.link.onState = (state, code) => this.linkChanged(state, code);
    this.link.start();
  }

  private linkChanged(state: LinkState, code = 0): void {
    const back = state === "open" && this.linkState === "reconnecting";
    this.linkState = state;
    if (state === "ended") {
      this.endCode = code;
      this.go("ended");
    }
    if (state === "reconnecting") this.announce(this.t("link.reconnecting"));
    if (back) {
      this.announce(this.t("link.back"));
      void this.solo?.refresh();
    }
    this.emit();
  }

  /** An order of before a reload is answered: the sessions are read anew anyway, so the view is enough. */
  private late(request: { fields: Record<string, unknown> }, message: Message): void {
    const play = this.playOf(String(request.fields["session_id"] ?? ""));
    if (play && message.type === "answer") play.take((message.value ?? {}) as Views);
    this.emit();
  }

  async signOut(): Promise<void> {
    this.link?.stop();
    this.link?.forget();
    await api("POST", "/api/sign-out", {}).catch((error: unknown) => this.fail(error));
    this.me = undefined;
    this.freeBets.clear();
    this.sessions.clear();
    this.realityChecks.clear();
    this.chosen = "";
    this.solo = undefined;
    this.tables = [];
    this.dialog = undefined;
    this.go("sign-in");
  }

  fail(error: unknown): void {
    if (!(error instanceof RequestError)) throw error;
    if (error.reason === "SIGNED_OUT") return;
    this.notice = this.errorWords(error);
    this.announce(this.notice);
  }

  /** The bridge has lost what was said meanwhile: whole views again, on the screen that is shown. */
  async restarted(): Promise<void> {
    this.realityChecks.clear();
    try {
      await Promise.all([this.sessions.resume(false), this.readLobby()]);
    } catch (error) {
      this.fail(error);
    }
  }

  // --- the lobby ---

  /** The lobby is shown: the tables now, and from now on what changes. */
  async openLobby(shownBy: object): Promise<void> {
    this.lobbies.add(shownBy);
    await this.readLobby().catch((error: unknown) => this.fail(error));
  }

  closeLobby(shownBy: object): void {
    if (this.lobbies.delete(shownBy) && this.lobbies.size === 0) this.link?.say("lobby_off");
  }

  private async readLobby(): Promise<void> {
    if (this.lobbies.size === 0 || !this.link) return;
    const { tables = [] } = (await this.link.request("lobby")) as { tables?: TableEntry[] };
    if (tables.length) this.lobby = tables;
    this.emit();
  }

  // --- screens ---

  go(screen: Screen): void {
    this.screen = screen;
    this.emit();
  }

  open(name: DialogName, more: Partial<Dialog> = {}): void {
    this.dialog = { name, play: this.current, ...more };
    this.emit();
  }

  closeDialog(): void {
    this.dialog = undefined;
    this.emit();
  }

  // --- sessions ---

  /** The session that keys and dialogs belong to. */
  get current(): Play | undefined {
    if (this.screen === "solo") return this.solo;
    return this.screen === "tables" ? this.tables[this.front] : undefined;
  }

  playOf(sessionId: string): Play | undefined {
    if (this.solo?.id === sessionId) return this.solo;
    return this.tables.find((play) => play.id === sessionId);
  }

  game(id: string | undefined): Game | undefined {
    return this.catalog.games?.find((game) => game.ruleset.id === id);
  }

  entry(table: string | undefined): TableEntry | undefined {
    return this.lobby.find((entry) => entry.table === table) ?? this.catalog.tables?.find((entry) => entry.table === table);
  }

  // --- profile ---

  async saveSettings(settings: Settings): Promise<void> {
    try {
      await api("PUT", "/api/settings", { settings });
      await this.useSettings(settings);
    } catch (error) {
      this.fail(error);
    }
  }

  async useSettings(settings: Settings): Promise<void> {
    const spoken = this.settings.language;
    this.settings = settings;
    if (settings.language && settings.language !== spoken) await this.speak(settings.language);
    this.emit();
  }

  /** The languages that the jurisdiction allows, of those that the page has. */
  get allowedLanguages(): string[] {
    return languagesOf(this.jurisdiction, LANGUAGES);
  }

  /** Before signing in: only this browser knows it. */
  async useLanguage(language: string): Promise<void> {
    await this.speak(language);
  }

  async refreshMe(): Promise<void> {
    this.me = await api<Me>("GET", "/api/me");
    this.emit();
  }
}
