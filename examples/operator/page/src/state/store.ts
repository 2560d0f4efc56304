/** Everything the page knows, and the one place that talks to the platform. */

import { currencyOf, exponentOf, isSolo } from "../model/accounts.js";
import type { Refusal } from "../model/betting.js";
import { ServerClock } from "../model/clock.js";
import { Connection, RequestError, type LinkState, type Message, type SocketLike } from "../model/connection.js";
import { languagesOf, tablesAtOnce } from "../model/jurisdiction.js";
import { formatMoney, formatNet } from "../model/money.js";
import { textOf, type TextsByGame } from "../model/texts.js";
import { int } from "../model/types.js";
import type { Catalog, ChatLine, Game, Jurisdiction, Links, Me, RoundView, SessionView, TableEntry, TableView } from "../model/types.js";
import { loadWords, Words, type WordKey } from "../words/index.js";
import { api } from "./api.js";
import { pushed } from "./pushed.js";
import type { Note, Play, Views } from "./play.js";
import { FreeBets } from "./free-bets.js";
import { Proofs } from "./proofs.js";
import { languageOf, LANGUAGES, settingsOf, STANDARD, type Settings } from "./settings.js";
import { SoloPlay } from "./solo.js";
import { Sound } from "./sound.js";
import { TablePlay } from "./table.js";
import { errorWords, refusalNote, tellRound, tellTable } from "./tell.js";

export type Screen = "loading" | "sign-in" | "lobby" | "solo" | "tables" | "ended";
export type DialogName = "history" | "settings" | "rules" | "limits" | "proof" | "chat" | "lobby";

export interface Dialog {
  name: DialogName;
  play?: Play | undefined;
  round?: string | undefined;
  game?: string | undefined;
}

export interface RealityCheck {
  session_id?: string;
  elapsed_ms?: string;
  net_position_minor?: string;
  currency?: string;
}

export const TABLES_ON_SCREEN = 4;


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
  realityCheck: RealityCheck | undefined;
  /** A line for the whole page, until it is closed. */
  notice = "";
  /** What the live region says. */
  spoken = "";
  link!: Connection;
  readonly clock = new ServerClock(() => performance.now());
  readonly sound = new Sound(() => this.settings);
  readonly proofs = new Proofs(this);
  readonly freeBets = new FreeBets(this);
  /** The account that games for one player are paid from; empty: the first one. */
  private chosen = "";
  private readonly listeners = new Set<() => void>();
  /** Open sessions of the player that the page does not show: the lobby goes on with them. */
  private kept: Views[] = [];

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
      this.go("sign-in");
    }
  }

  /** Signed in: profile, catalog, connection; then where the player was. */
  async enter(): Promise<void> {
    this.me = await api<Me>("GET", "/api/me");
    this.settings = settingsOf(this.me.settings);
    const wish = this.settings.language || this.me.language;
    await this.speak(languageOf(wish, LANGUAGES, [this.language]));
    this.notice = "";
    this.connect();
    await this.freeBets.load();
    const launch = /#launch=([^&]+)/.exec(location.hash)?.[1];
    if (launch) {
      // The token counts once and stands in no history.
      history.replaceState(null, "", location.pathname === "/play" ? "/" : location.pathname);
      await this.redeem(decodeURIComponent(launch));
    } else await this.resume();
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
    this.link = new Connection(
      {
        open: (path) => new WebSocket(`${scheme}//${location.host}${path}`) as SocketLike,
        storage: sessionStorage,
        now: () => performance.now(),
        uuid: () => crypto.randomUUID(),
        random: Math.random,
        after: (ms, run) => setTimeout(run, ms),
        cancel: (timer) => clearTimeout(timer as number),
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
    this.link.stop();
    this.link.forget();
    await api("POST", "/api/sign-out", {}).catch((error: unknown) => this.fail(error));
    this.me = undefined;
    this.freeBets.clear();
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

  /** At so many tables at once the player may be (T-4), and the screen has room. */
  get tablesMax(): number {
    return tablesAtOnce(this.jurisdiction, TABLES_ON_SCREEN);
  }

  /** Opens a game or a table from the lobby. A table beside others (`beside`) is added, else it takes their place. */
  async launch(what: { game: string; table?: string }, mode: "real" | "demo" = "real", beside = false): Promise<void> {
    if (what.table && this.tables.some((play) => play.tableId === what.table)) {
      this.front = this.tables.findIndex((play) => play.tableId === what.table);
      this.dialog = undefined;
      this.go("tables");
      return;
    }
    const currency = (what.table ? this.entry(what.table)?.currency : undefined) ?? this.currency;
    try {
      if (what.table && !beside && this.screen === "tables") for (const play of [...this.tables]) await this.leaveTable(play);
      const kept = this.kept.find(({ session }) =>
        what.table ? session?.table === what.table : isSolo(session, what.game, currency, mode),
      );
      if (kept) {
        this.kept = this.kept.filter((each) => each !== kept);
        await this.adopt(kept);
        this.closeDialog();
        return;
      }
      const body = { request_id: crypto.randomUUID(), ...what, currency, language: this.language, mode };
      const { url } = await api<{ url: string }>("POST", "/api/launches", body);
      await this.redeem(decodeURIComponent(/#launch=([^&]+)/.exec(url)?.[1] ?? ""));
      this.dialog = undefined;
    } catch (error) {
      this.fail(error);
    }
    this.emit();
  }

  /** X: leaves this table alone (F-12). The session stays open, its balance too. */
  async leaveTable(play: TablePlay): Promise<void> {
    if (!(await play.leave())) return;
    this.kept = [...this.kept, { session: play.session }];
    this.link.say("unwatch", { table: play.tableId, session_id: play.id });
    const at = this.tables.indexOf(play);
    this.tables = this.tables.filter((each) => each !== play);
    if (at <= this.front) this.front = Math.max(0, this.front - 1);
    if (this.tables.length === 0 && this.screen === "tables") this.screen = "lobby";
    this.emit();
  }

  /** The solo game is left for the lobby; it can be gone on with. */
  leaveSolo(): void {
    if (this.solo && !this.solo.ended) {
      const { solo } = this;
      this.kept = [...this.kept.filter((each) => each.session?.session_id !== solo.id), { session: solo.session }];
    }
    this.go("lobby");
  }

  /** Gives the balance back to the account and closes the session. */
  async cashOut(): Promise<void> {
    const { current } = this;
    if (!current) return;
    if (current instanceof TablePlay) await this.leaveTable(current);
    if (!(await current.close())) return;
    this.kept = this.kept.filter((each) => each.session?.session_id !== current.id);
    if (current === this.solo) this.solo = undefined;
    this.notice = this.t("cash_out.done", { amount: this.money(int(current.session.paid_out_minor), current.currency) });
    this.go(this.tables.length ? "tables" : "lobby");
    await this.refreshMe().catch((error: unknown) => this.fail(error));
  }

  private async redeem(launch: string): Promise<void> {
    const answer = (await this.link.request("redeem", { launch })) as Views;
    if (answer.session) await this.adopt(answer);
  }

  /** The player's sessions that are still open: the page goes on where it was. */
  async resume(): Promise<void> {
    const answer = (await this.link.request("sessions")) as { sessions?: (Views & SessionView)[] } | (Views & SessionView)[];
    const list = Array.isArray(answer) ? answer : (answer.sessions ?? []);
    for (const each of list) {
      const views: Views = each.session ? each : { session: each };
      const { session } = views;
      if (!session) continue;
      const known = this.playOf(session.session_id) !== undefined;
      const playing = session.table ? Boolean(views.seat && !views.seat.ended) : Boolean(session.open_round);
      if (known || playing) await this.adopt(views, false);
      else this.kept = [...this.kept.filter((each) => each.session?.session_id !== session.session_id), views];
    }
    if (this.tables.some((play) => play.seated)) this.screen = "tables";
    else if (this.solo?.open) this.screen = "solo";
    this.emit();
  }

  /** A session becomes the page's own: it is shown, and at a table it is watched. */
  async adopt(views: Views, show = true): Promise<void> {
    const { session } = views;
    if (!session) return;
    const known = this.playOf(session.session_id);
    const game = this.game(session.ruleset?.id);
    this.sound.prepare();
    if (!game) {
      this.notice = this.t("error.UNKNOWN_GAME", { game: session.ruleset?.id ?? "" });
      return;
    }
    if (session.table) {
      const play = (known as TablePlay | undefined) ?? new TablePlay(this, session, game, this.entry(session.table));
      if (!known) {
        if (this.tables.length >= TABLES_ON_SCREEN) return;
        this.tables = [...this.tables, play];
        this.sound.muted = false;
      }
      play.take(views);
      if (show) {
        this.front = this.tables.indexOf(play);
        this.screen = "tables";
      }
      await this.watch(play);
    } else {
      if (known) known.take(views);
      else this.solo = new SoloPlay(this, session, game);
      if (show) this.screen = "solo";
    }
    this.emit();
  }

  /** Whole views of the table from now on, and the chat so far. */
  async watch(play: TablePlay): Promise<void> {
    try {
      play.take((await this.link.request("get", { session_id: play.id })) as Views);
      this.emit();
      await this.link.request("watch", { table: play.tableId, session_id: play.id });
      const { lines = [] } = (await this.link.request("messages", { table: play.tableId, page_token: "" })) as { lines?: ChatLine[] };
      play.lines = [...lines].reverse();
    } catch (error) {
      this.fail(error);
    }
    this.emit();
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

  /** The document was hidden or is closing (F-8). */
  hidden(): void {
    const took = this.tables.filter((play) => play.hidden());
    if (took.length) {
      this.link.say("hidden");
      this.notice = this.t("hidden");
    }
    this.emit();
  }

  async realityCheckSeen(): Promise<void> {
    const seen = this.realityCheck;
    this.realityCheck = undefined;
    this.emit();
    if (seen) this.link.say("reality_check_seen", seen.session_id ? { session_id: seen.session_id } : {});
  }
}
