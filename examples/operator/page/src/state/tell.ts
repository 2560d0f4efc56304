/** What the page says aloud (live region, voice) about a round, a table, a refusal. */

import type { Refusal } from "../model/betting.js";
import { cardOf } from "../model/cards.js";
import { RequestError } from "../model/connection.js";
import { formatMoney } from "../model/money.js";
import { isOver, isWin, netOf, resultKey } from "../model/rules.js";
import { capital, errorText, labelOf, textOf } from "../model/texts.js";
import { bare, type RoundView, type TableView } from "../model/types.js";
import type { WordKey } from "../words/index.js";
import type { Note, Play } from "./play.js";
import type { Store } from "./store.js";

export function cardWords(store: Store, cards: readonly string[] | undefined): string {
  return (cards ?? [])
    .map((code) => {
      const { rank, suit } = cardOf(code);
      return store.t("card", { rank: store.t(`rank.${rank}` as WordKey), suit: store.t(`suit.${suit}` as WordKey) });
    })
    .join(", ");
}

/** What a player hears when a round moves on: the new cards, the combination, at the end the result. */
export function roundWords(store: Store, play: Play, round: RoundView, was: RoundView | undefined): string {
  const game = play.game.ruleset.id;
  const parts: string[] = [];
  if (was?.round_id !== round.round_id) parts.push(store.t("tell.you", { cards: cardWords(store, round.hole_cards) }));
  const shown = was?.round_id === round.round_id ? (was.board?.length ?? 0) : 0;
  const fresh = (round.board ?? []).slice(shown);
  if (fresh.length) parts.push(store.t("tell.board", { cards: cardWords(store, fresh) }));
  if (round.player_hand?.category) {
    parts.push(store.t("tell.hand", { hand: textOf(store.texts, game, "hands", round.player_hand.category) }));
  }
  if (isOver(round)) {
    if (round.dealer_hand?.category) {
      parts.push(
        store.t("tell.dealer", {
          cards: cardWords(store, round.dealer_cards),
          hand: textOf(store.texts, game, "hands", round.dealer_hand.category),
        }),
      );
    }
    parts.push(resultWords(store, play, round));
  }
  return parts.join(" ");
}

/** The result in one sentence. */
export function resultWords(store: Store, play: Play, round: RoundView): string {
  const net = netOf(round);
  const amount = store.money(net < 0n ? -net : net, play.currency);
  return store.t(resultKey(round) as WordKey, { amount });
}

export function tellRound(store: Store, play: Play, round: RoundView, was: RoundView | undefined): void {
  store.announce(roundWords(store, play, round, was));
  if (isOver(round) && !isOver(was ?? ({ round_id: "" } as RoundView)) && isWin(round)) store.sound.win();
}

export function tellTable(store: Store, table: TableView, was: TableView | undefined): void {
  const state = bare(table.state, "TABLE_STATE_");
  if (was?.state === table.state) return;
  if (state === "BETTING") store.announce(store.t("light.green"));
  if (state === "CLOSED") store.announce(store.t("light.red"));
  if (state === "PAUSED") store.announce(store.t("light.paused"));
}

/** Why a bet is not placed, with the number, and what would be. */
export function refusalNote(store: Store, refusal: Refusal, play: Play): Note {
  const { reason, bet = "", limit = 0n, remedy } = refusal;
  const exponent = store.exponent(play.currency);
  const text = store.t(`refusal.${reason}`, {
    bet: labelOf(store.texts, play.game.ruleset.id, "bets", bet),
    limit: formatMoney(limit, exponent, play.currency, store.language),
    balance: store.money(play.balance, play.currency),
  });
  return remedy === undefined || !bet ? { text } : { text, remedy: { bet, amount: remedy } };
}

/** Facts of refusals that are amounts. */
const AMOUNTS = new Set(["limit", "value", "balance", "needed", "min", "max", "step", "left"]);
const MONEY_REASONS = /^(STAKE_|INSUFFICIENT_|LOSS_|PARTICIPATION_CAP|DEPOSIT_)/;

export function errorWords(store: Store, error: RequestError, currency: string): string {
  const own = `error.${error.reason}` as WordKey;
  const text = errorText(store.texts, error.reason) ?? (store.words.has(own) ? store.t(own) : error.message || error.reason);
  const facts: string[] = [];
  for (const [name, value] of Object.entries(error.metadata)) {
    const money = MONEY_REASONS.test(error.reason) && AMOUNTS.has(name) && /^\d+$/.test(value);
    if (money) facts.push(`${store.words.has(`fact.${name}`) ? store.t(`fact.${name}` as WordKey) : name} ${store.money(BigInt(value), currency)}`);
  }
  const sentence = capital(text);
  return facts.length ? `${sentence} (${facts.join(", ")})` : sentence;
}
