/** The player's sessions: which of them the page shows, how one is opened, left and closed. */

import { isSolo } from "../model/accounts.js";
import { tablesAtOnce } from "../model/jurisdiction.js";
import { returnUrlOf } from "../model/return-url.js";
import { int, type ChatLine, type SessionView } from "../model/types.js";
import { api } from "./api.js";
import type { Views } from "./play.js";
import { SoloPlay } from "./solo.js";
import type { Store } from "./store.js";
import { TablePlay } from "./table.js";

const TABLES_ON_SCREEN = 4;

export interface Wish {
  game: string;
  table?: string;
}

export class Sessions {
  /** Where the operator wants the player to go who leaves the page, if it said so. */
  returnUrl: string | undefined;
  /** Open sessions of the player that the page does not show: the lobby goes on with them. */
  private kept: Views[] = [];

  constructor(private readonly store: Store) {}

  /** At so many tables at once the player may be (T-4), and the screen has room. */
  get tablesMax(): number {
    return tablesAtOnce(this.store.jurisdiction, TABLES_ON_SCREEN);
  }

  /** Opens what the launch is for. Where there is none, or it opens nothing, the page goes on where the player was. */
  async begin(launch: string | undefined): Promise<void> {
    const { store } = this;
    try {
      if (launch && (await this.redeem(launch))) return;
    } catch (error) {
      store.fail(error);
    }
    try {
      await this.resume(true);
    } catch (error) {
      store.fail(error);
    }
    if (store.tables.some((play) => play.seated)) store.go("tables");
    else if (store.solo?.open) store.go("solo");
  }

  /** Opens a game or a table from the lobby. A table beside others (`beside`) is added, else it takes their place. */
  async launch(what: Wish, mode: "real" | "demo" = "real", beside = false): Promise<void> {
    try {
      await this.opened(what, mode, beside);
    } catch (error) {
      this.store.fail(error);
    }
    this.store.emit();
  }

  private async opened(what: Wish, mode: "real" | "demo", beside: boolean): Promise<void> {
    const { store } = this;
    const sits = store.tables.findIndex((play) => what.table && play.tableId === what.table);
    if (sits >= 0) {
      store.front = sits;
      store.closeDialog();
      store.go("tables");
      return;
    }
    if (what.table && !(await this.makeRoom(beside))) return;
    const currency = (what.table ? store.entry(what.table)?.currency : undefined) ?? store.currency;
    if (store.solo && !store.solo.ended && !what.table && isSolo(store.solo.session, what.game, currency, mode)) {
      store.closeDialog();
      store.go("solo");
      return;
    }
    const kept = this.kept.find(({ session }) =>
      what.table ? session?.table === what.table : isSolo(session, what.game, currency, mode),
    );
    if (kept) {
      this.kept = this.kept.filter((each) => each !== kept);
      await this.adopt(kept);
    } else {
      const body = { request_id: crypto.randomUUID(), ...what, currency, language: store.language, mode };
      const { url } = await api<{ url: string }>("POST", "/api/launches", body);
      await this.redeem(decodeURIComponent(/#launch=([^&]+)/.exec(url)?.[1] ?? ""));
    }
    store.closeDialog();
  }

  /** Leaves the other tables, unless the new one goes beside them. Whether there is room now; the player is told why not. */
  private async makeRoom(beside: boolean): Promise<boolean> {
    const { store } = this;
    if (beside && store.tables.length >= this.tablesMax) {
      this.say(store.t("tables.full", { count: this.tablesMax }));
      return false;
    }
    if (!beside) for (const play of [...store.tables]) await this.leaveTable(play);
    const [stays] = beside ? [] : store.tables;
    if (stays?.note) this.say(stays.note.text);
    return !stays;
  }

  /** X: leaves this table alone (F-12). The session stays open, its balance too. */
  async leaveTable(play: TablePlay): Promise<void> {
    const { store } = this;
    if (!(await play.leave())) return;
    this.keep({ session: play.session });
    store.link.say("unwatch", { table: play.tableId, session_id: play.id });
    const at = store.tables.indexOf(play);
    store.tables = store.tables.filter((each) => each !== play);
    if (at <= store.front) store.front = Math.max(0, store.front - 1);
    if (store.tables.length === 0 && store.screen === "tables") store.screen = "lobby";
    store.emit();
  }

  /** Gives the balance back to the account and closes the session. */
  async cashOut(): Promise<void> {
    const { store } = this;
    const { current } = store;
    if (!current) return;
    if (current instanceof TablePlay) await this.leaveTable(current);
    if (!(await current.close())) return;
    this.kept = this.kept.filter((each) => each.session?.session_id !== current.id);
    store.realityChecks.drop(current.id);
    if (current === store.solo) store.solo = undefined;
    store.notice = store.t("cash_out.done", { amount: store.money(int(current.session.paid_out_minor), current.currency) });
    store.go(store.tables.length ? "tables" : "lobby");
    await store.refreshMe().catch((error: unknown) => store.fail(error));
  }

  /** Whether the launch has opened something that is shown. */
  private async redeem(launch: string): Promise<boolean> {
    const answer = (await this.store.link.request("redeem", { launch })) as Views;
    return answer.session ? this.adopt(answer) : false;
  }

  /**
   * The player's open sessions. Those that are shown are taken whole. Of the others those in play are shown where the page
   * begins; what else is open the lobby goes on with.
   */
  async resume(isStart: boolean): Promise<void> {
    const { store } = this;
    const answer = (await store.link.request("sessions")) as { sessions?: (Views & SessionView)[] } | (Views & SessionView)[];
    const list = Array.isArray(answer) ? answer : (answer.sessions ?? []);
    const shown = new Set([...store.tables, ...(store.solo ? [store.solo] : [])]);
    for (const each of list) {
      const views: Views = each.session ? each : { session: each };
      const { session } = views;
      if (!session) continue;
      const play = store.playOf(session.session_id);
      if (play) shown.delete(play as TablePlay | SoloPlay);
      const isPlaying = session.table ? Boolean(views.seat && !views.seat.ended) : Boolean(session.open_round);
      if (play instanceof SoloPlay) await play.refresh();
      else if (play || (isStart && isPlaying)) await this.adopt(views, false);
      else this.keep(views);
    }
    // Closed meanwhile.
    for (const play of shown) await play.refresh();
    store.emit();
  }

  /** A session becomes the page's own: it is shown, and at a table it is watched. Whether there was room for it. */
  async adopt(views: Views, show = true): Promise<boolean> {
    const { store } = this;
    const { session } = views;
    if (!session) return false;
    const known = store.playOf(session.session_id);
    const game = store.game(session.ruleset?.id);
    store.sound.prepare();
    if (!game) {
      this.say(store.t("error.UNKNOWN_GAME", { game: session.ruleset?.id ?? "" }));
      return false;
    }
    this.returnUrl = returnUrlOf(session.return_url) ?? this.returnUrl;
    if (session.table) {
      if (!known && store.tables.length >= TABLES_ON_SCREEN) {
        this.keep(views);
        this.say(store.t("tables.full", { count: TABLES_ON_SCREEN }));
        return false;
      }
      const play = (known as TablePlay | undefined) ?? new TablePlay(store, session, game, store.entry(session.table));
      if (!known) {
        store.tables = [...store.tables, play];
        store.sound.muted = false;
      }
      play.take(views);
      if (show) {
        store.front = store.tables.indexOf(play);
        store.screen = "tables";
      }
      await this.watch(play);
    } else {
      if (known) known.take(views);
      else {
        if (store.solo && !store.solo.ended) this.keep({ session: store.solo.session });
        store.solo = new SoloPlay(store, session, game);
      }
      if (show) store.screen = "solo";
    }
    store.emit();
    return true;
  }

  /** Whole views of the table from now on, and the chat so far. */
  private async watch(play: TablePlay): Promise<void> {
    const { store } = this;
    try {
      await play.read();
      store.emit();
      await store.link.request("watch", { table: play.tableId, session_id: play.id });
      const { lines = [] } = (await store.link.request("messages", { table: play.tableId, page_token: "" })) as { lines?: ChatLine[] };
      play.lines = [...lines].reverse();
    } catch (error) {
      store.fail(error);
    }
    store.emit();
  }

  clear(): void {
    this.kept = [];
    this.returnUrl = undefined;
  }

  /** The lobby goes on with it. */
  private keep(views: Views): void {
    this.returnUrl ??= returnUrlOf(views.session?.return_url);
    this.kept = [...this.kept.filter((each) => each.session?.session_id !== views.session?.session_id), views];
  }

  private say(text: string): void {
    this.store.notice = text;
    this.store.announce(text);
  }
}
