/** The whole page: head, screen, windows, the live region, and the keys (F-4). */

import { css, html, nothing, type TemplateResult } from "lit";

import { commandOf, DeleteKey, type Command } from "../model/keys.js";
import { int } from "../model/types.js";
import { formatElapsed } from "../model/clock.js";
import { takeBack } from "../state/hidden.js";
import { Store } from "../state/store.js";
import type { RealityCheck } from "../state/reality.js";
import { filled } from "../words/index.js";
import { TablePlay } from "../state/table.js";
import { define, shared, StoreElement } from "./base.js";
import { tokens } from "./tokens.js";
import "./chat.js";
import "./dialog.js";
import "./history.js";
import "./limits.js";
import "./lobby.js";
import "./rules.js";
import "./settings.js";
import "./sign-in.js";
import "./solo.js";
import "./tables.js";

export class PageElement extends StoreElement {
  static override properties = { ...StoreElement.properties, menuOpen: { state: true } };
  override store = new Store();
  private menuOpen = false;

  static override styles = [
    shared,
    tokens,
    css`
      :host {
        display: grid;
        grid-template-rows: auto auto 1fr;
        min-height: 100dvh;
        background: var(--page);
      }
      /* A game fills the window, and what is said about it stays in view: only its felt scrolls. */
      @media (min-height: 32.01rem) {
        :host([playing]) {
          height: 100dvh;
          grid-template-rows: auto auto minmax(0, 1fr);
        }
      }
      .top {
        display: flex;
        flex-wrap: wrap;
        align-items: center;
        gap: 0.1rem 0.25rem;
        padding: 0.15rem 0.5rem;
        /* One line of buttons: it is there before they are, and nothing below it moves. */
        min-height: calc(2.8rem + 1px);
        background: var(--panel);
        border-bottom: 1px solid var(--line);
      }
      .top button,
      .top a {
        min-height: 2.5rem;
        padding: 0.2rem 0.5rem;
        font-size: 0.875rem;
      }
      .top a {
        display: inline-grid;
        align-items: center;
        color: inherit;
        font-weight: 600;
        text-decoration: underline;
        border-color: transparent;
        background: transparent;
      }
      .more {
        display: flex;
        flex-wrap: wrap;
        align-items: center;
      }
      .menu {
        display: none;
      }
      @media (max-width: 60rem) {
        .menu {
          display: inline-block;
        }
        .more {
          order: 1;
          width: 100%;
        }
        .top:not(.open) .more {
          display: none;
        }
      }
      .account {
        margin-left: auto;
        font-size: 0.875rem;
        font-variant-numeric: tabular-nums;
      }
      main {
        min-width: 0;
        min-height: 0;
        display: grid;
        align-content: stretch;
      }
      rgs-solo {
        container-type: inline-size;
      }
      /* A game takes what is left of the window, whatever is in it. Where a grid had to measure it first, each felt was
         laid out twice for each change anywhere, with cards of two sizes. */
      @media (min-height: 32.01rem) {
        :host([playing]) main {
          position: relative;
        }
        :host([playing]) :is(rgs-solo, rgs-tables) {
          position: absolute;
          inset: 0;
        }
      }
      .link {
        background: #fff3d6;
        color: #3d2a00;
        padding: 0.4rem 1rem;
        font-weight: 600;
        display: flex;
        gap: 1rem;
        align-items: center;
        justify-content: space-between;
      }
      .link button {
        color: inherit;
        background: transparent;
        border-color: currentColor;
        min-height: 2rem;
      }
      .ended {
        max-width: 34rem;
        margin: 3rem auto;
        padding: 1rem;
        align-self: start;
        align-content: start;
      }
    `,
  ];

  private readonly deleteKey = new DeleteKey((command) => this.obey(command), {
    set: (run, ms) => setTimeout(run, ms),
    clear: (timer) => clearTimeout(timer as number),
  });
  private readonly onKeyDown = (event: KeyboardEvent): void => this.keyDown(event);
  private readonly onKeyUp = (event: KeyboardEvent): void => {
    if (event.key === "Delete") this.deleteKey.up();
  };
  private readonly onVisible = (): void => {
    if (document.hidden) void takeBack(this.store);
    else this.store.link?.hurry();
  };
  private readonly onLeave = (): void => void takeBack(this.store);
  private readonly onNetwork = (): void => this.store.link?.hurry();

  override connectedCallback(): void {
    super.connectedCallback();
    document.addEventListener("keydown", this.onKeyDown);
    document.addEventListener("keyup", this.onKeyUp);
    document.addEventListener("visibilitychange", this.onVisible);
    window.addEventListener("pagehide", this.onLeave);
    window.addEventListener("online", this.onNetwork);
    void this.store.start();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    document.removeEventListener("keydown", this.onKeyDown);
    document.removeEventListener("keyup", this.onKeyUp);
    document.removeEventListener("visibilitychange", this.onVisible);
    window.removeEventListener("pagehide", this.onLeave);
    window.removeEventListener("online", this.onNetwork);
    this.store.link?.stop();
  }

  protected override render(): unknown {
    const { store } = this;
    if (!store.words) return nothing;
    this.setAttribute("data-theme", store.settings.theme);
    document.documentElement.dataset["theme"] = store.settings.theme;
    this.toggleAttribute("playing", store.screen === "solo" || store.screen === "tables");
    return html`${store.me && store.screen !== "ended" ? this.head() : html`<div class="top"></div>`}
      ${this.line() ?? html`<div></div>`}
      <main>${this.screen()}</main>
      ${this.window()} ${store.realityChecks.shown && store.screen !== "ended" ? this.realityCheck(store.realityChecks.shown) : nothing}
      <div class="hidden-words" role="status" aria-live="polite" data-live>${store.spoken}</div>`;
  }

  private head(): TemplateResult {
    const { store } = this;
    const { links, current } = store;
    const account = store.me?.balances?.[0];
    const link = (href: string | undefined, key: "nav.cashier" | "nav.responsible" | "nav.help"): unknown =>
      href ? html`<a class="button quiet" href=${href} target="_blank" rel="noopener">${this.t(key)}</a>` : nothing;
    const heading = current instanceof TablePlay ? current.name : (current?.session.game_name ?? this.t("nav.lobby"));
    return html`<header class="top ${this.menuOpen ? "open" : ""}">
      <h1 class="hidden-words">${heading}</h1>
      <button class="quiet" data-does="lobby" @click=${() => this.lobby()}>${this.t("nav.lobby")}</button>
      ${store.solo && store.screen !== "solo" ? html`<button class="quiet" @click=${() => store.go("solo")}>${store.solo.session.game_name}</button>` : nothing}
      ${store.tables.length && store.screen !== "tables" ? html`<button class="quiet" @click=${() => store.go("tables")}>${this.t("nav.tables")}</button>` : nothing}
      <button class="quiet menu" data-does="menu" aria-expanded=${this.menuOpen} @click=${() => (this.menuOpen = !this.menuOpen)}>
        ☰ ${this.t("nav.menu")}
      </button>
      <div class="more" @click=${() => (this.menuOpen = false)}>
      <button class="quiet" data-does="history" @click=${() => store.open("history")}>${this.t("nav.history")}</button>
      ${current ? html`<button class="quiet" data-does="rules" @click=${() => store.open("rules", { game: current.game.ruleset.id })}>${this.t("nav.rules")}</button>` : nothing}
      <button class="quiet" data-does="limits" @click=${() => store.open("limits")}>${this.t("nav.limits")}</button>
      <button class="quiet" data-does="settings" @click=${() => store.open("settings")}>${this.t("nav.settings")}</button>
      <button class="quiet" data-does="sound" aria-pressed=${store.sound.on} @click=${() => this.mute()}>
        ${this.t(store.sound.on ? "nav.sound_on" : "nav.sound_off")}
      </button>
      ${current && current.session.status === "SESSION_STATUS_OPEN"
        ? html`<button class="quiet" data-does="cash-out" @click=${() => this.cashOut()}>${this.t("nav.cash_out")}</button>`
        : nothing}
      ${store.sessions.returnUrl ? html`<a class="button quiet" data-does="return" href=${store.sessions.returnUrl} rel="noopener">${this.t("nav.return")}</a>` : nothing}
      ${link(links.cashier, "nav.cashier")} ${link(links.responsible_play, "nav.responsible")} ${link(links.help, "nav.help")}
      <button class="quiet" data-does="sign-out" @click=${() => store.signOut()}>${this.t("nav.sign_out")}</button>
      </div>
      <span class="account">${store.me?.nickname ?? store.me?.name}${account ? ` · ${store.money(int(account.amount_minor), account.currency)}` : nothing}</span>
    </header>`;
  }

  /** One line for the whole page: the connection, or what was said last. */
  private line(): TemplateResult | undefined {
    const { store } = this;
    if (store.me && store.linkState === "reconnecting") return this.said(html`<p class="link" data-link>${this.t("link.reconnecting")}</p>`);
    if (!store.notice) return undefined;
    return this.said(html`<div class="link" data-notice>
      <span>${store.notice}</span>
      <button aria-label=${this.t("dialog.close")} @click=${() => this.dismiss()}>✕</button>
    </div>`);
  }

  private said(inside: TemplateResult): TemplateResult {
    return html`<section aria-label=${this.t("page.notice")}>${inside}</section>`;
  }

  private screen(): unknown {
    const { store } = this;
    switch (store.screen) {
      case "sign-in":
        return html`<rgs-sign-in .store=${store}></rgs-sign-in>`;
      case "lobby":
        return html`<rgs-lobby .store=${store}></rgs-lobby>`;
      case "solo":
        return store.solo ? html`<rgs-solo .store=${store} .play=${store.solo}></rgs-solo>` : nothing;
      case "tables":
        return html`<rgs-tables .store=${store}></rgs-tables>`;
      case "ended":
        return this.ended();
      default:
        return html`<p class="ended" data-state="loading">${this.t("state.loading")}</p>`;
    }
  }

  private ended(): TemplateResult {
    const words = { 0: "ended.failed", 4001: "ended.excluded", 4003: "ended.signed_out", 4004: "ended.elsewhere", 4008: "ended.too_many" } as const;
    const key = words[this.store.endCode as keyof typeof words] ?? "ended.signed_out";
    return html`<section class="ended panel stack" data-state="ended">
      <h1>${this.t("ended.title")}</h1>
      <p>${this.t(key)}</p>
      ${this.store.endCode === 4001 && this.store.links.responsible_play
        ? html`<p><a href=${this.store.links.responsible_play}>${this.t("nav.responsible")}</a></p>
            <button data-does="sign-out" @click=${() => this.store.signOut()}>${this.t("nav.sign_out")}</button>`
        : html`<button class="primary" @click=${() => location.reload()}>${this.t("ended.again")}</button>`}
    </section>`;
  }

  private window(): unknown {
    const { store } = this;
    const { dialog } = store;
    // Nothing stands over the last word.
    if (!dialog || store.screen === "ended") return nothing;
    if (dialog.name === "chat") {
      return dialog.play instanceof TablePlay ? html`<rgs-chat .store=${store} .play=${dialog.play}></rgs-chat>` : nothing;
    }
    const inside = (): unknown => {
      switch (dialog.name) {
        case "history":
          return html`<rgs-history .store=${store}></rgs-history>`;
        case "settings":
          return html`<rgs-settings .store=${store}></rgs-settings>`;
        case "limits":
          return html`<rgs-limits .store=${store}></rgs-limits>`;
        case "rules":
          return html`<rgs-rules .store=${store} .game=${store.game(dialog.game)}></rgs-rules>`;
        case "lobby":
          return html`<rgs-lobby .store=${store}></rgs-lobby>`;
        case "proof":
          return html`<rgs-proof .store=${store} .roundId=${dialog.round ?? ""} .sessionId=${dialog.play?.id ?? ""}></rgs-proof>`;
        default:
          return nothing;
      }
    };
    return html`<rgs-dialog .store=${store} heading=${this.t(`nav.${dialog.name}` as "nav.lobby")} @done=${() => store.closeDialog()}>${inside()}</rgs-dialog>`;
  }

  private realityCheck(check: RealityCheck): TemplateResult {
    const { store } = this;
    const play = store.playOf(check.session_id);
    const { currency = "EUR" } = check;
    const text = filled(store.texts[""]?.reality_check ?? Object.values(store.texts)[0]?.reality_check ?? "", {
      elapsed: formatElapsed(Number(check.elapsed_ms ?? 0)),
      staked: store.money(int(check.staked_minor), currency),
      returned: store.money(int(check.returned_minor), currency),
      // No line ends behind the sign.
      net: store.net(int(check.net_position_minor), currency).replace("\u2212", "\u2212\u2060"),
    });
    return html`<rgs-dialog .store=${store} heading=${this.t("reality.title")} @done=${() => store.realityChecks.seen()}>
      <div class="stack" data-reality=${check.session_id}>
        ${play ? html`<p class="muted">${play instanceof TablePlay ? play.name : play.session.game_name}</p>` : nothing}
        <p>${text}</p>
        <div class="row">
          <button class="primary" data-does="go-on" @click=${() => store.realityChecks.seen()}>${this.t("reality.go_on")}</button>
          <button data-does="stop" @click=${() => this.stopPlaying()}>${this.t("reality.stop")}</button>
        </div>
      </div>
    </rgs-dialog>`;
  }

  private stopPlaying(): void {
    void this.store.realityChecks.seen();
    this.store.open("limits");
  }

  private dismiss(): void {
    this.store.notice = "";
    this.store.emit();
  }

  private mute(): void {
    this.store.sound.muted = !this.store.sound.muted;
    this.store.emit();
  }

  /** Tables go on while the lobby is open over them (T-7). */
  private lobby(): void {
    const { store } = this;
    if (store.screen === "tables" || store.screen === "solo") store.open("lobby");
    else store.go("lobby");
  }

  private async cashOut(): Promise<void> {
    await this.store.sessions.cashOut();
  }

  // --- keys ---

  private keyDown(event: KeyboardEvent): void {
    const { store } = this;
    if (!store.words || event.defaultPrevented) return;
    const target = event.composedPath()[0] as Element;
    const typing = target.matches?.("input:not([type=checkbox],[type=range]), select, textarea") ?? false;
    const onButton = target.matches?.("button, summary, a, input") ?? false;
    const { key, ctrlKey: ctrl, metaKey: meta, altKey: alt, repeat } = event;
    if (key === "Delete" && !typing && this.keysOn) {
      event.preventDefault();
      this.deleteKey.down();
      return;
    }
    const command = commandOf({ key, ctrl, meta, alt, repeat, typing, onButton });
    if (!command || (command.does !== "escape" && !this.keysOn)) return;
    // A dialog closes by itself; the chat is a window of ours.
    if (command.does === "escape" && store.dialog && store.dialog.name !== "chat") return;
    event.preventDefault();
    this.obey(command);
  }

  private get keysOn(): boolean {
    const { store } = this;
    return store.settings.keys && !store.realityChecks.shown && (!store.dialog || store.dialog.name === "chat");
  }

  private obey(command: Command): void {
    const { store } = this;
    const play = store.current;
    if (command.does === "escape") {
      if (store.dialog) store.closeDialog();
      else if (document.fullscreenElement) void document.exitFullscreen();
      else if (store.me && store.screen !== "ended") this.lobby();
      return;
    }
    if (!play) return;
    if (command.does === "chip") play.pick(command.index);
    if (command.does === "space" && play.bettingOpen) play.space();
    if (command.does === "undo") play.undo();
    if (command.does === "clear") play.clear();
  }
}

define("rgs-page", PageElement);
