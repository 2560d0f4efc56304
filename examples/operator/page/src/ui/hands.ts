/** The cards of one hand against the dealer, with both combinations named (F-10). */

import { html, nothing, type TemplateResult } from "lit";

import { isOver } from "../model/rules.js";
import { capital, textOf } from "../model/texts.js";
import type { Game, Hand } from "../model/types.js";
import type { Store } from "../state/store.js";
import { handWords } from "../words/hand.js";
import { row } from "./cards.js";
import { feltTexts } from "./felt-texts.js";

export interface Hands {
  hole_cards?: string[] | undefined;
  dealer_cards?: string[] | undefined;
  board?: string[] | undefined;
  player_hand?: Hand | undefined;
  dealer_hand?: Hand | undefined;
  dealer_qualifies?: boolean | undefined;
  status?: string | undefined;
}

/** `own`: the hole cards belong to this player; false where all share one hand or none is dealt. */
export function hands(store: Store, game: Game, shown: Hands | undefined, own = true): TemplateResult {
  const id = game.ruleset.id;
  const { words, texts } = feltTexts(store, game);
  const over = Boolean(shown?.dealer_hand) || (shown?.status !== undefined && isOver({ round_id: "", status: shown.status }));
  const players = shown?.player_hand;
  const dealers = shown?.dealer_hand;
  const five = over ? players?.cards : undefined;
  const dealersFive = over ? dealers?.cards : undefined;
  const named = (who: string, hand: Hand | undefined, against: Hand | undefined, kind: string): TemplateResult => {
    if (!hand?.category) return html`<span>${who}</span>`;
    const text = handWords(words, textOf(texts, id, "hands", hand.category), hand, over ? against : undefined);
    const key = over && hand.cards?.length ? html`<span class="key ${kind}"></span>` : nothing;
    return html`<span>${key}${who}: ${text}</span>`;
  };
  const dealt = Boolean(shown?.hole_cards?.length) || Boolean(shown?.board?.length);
  const dealer = capital(texts[id]?.dealer ?? "");
  const you = words.get(own ? "felt.you" : "felt.shared");
  const unqualified = over && dealers && !shown?.dealer_qualifies;
  return html`<div class="hand dealer">
      ${row(store, shown?.dealer_cards, 2, { backs: dealt, label: dealer, dealers: dealersFive })}
      <p class="named" lang=${words.language}>
        ${named(dealer, dealers, players, "dealers")}
        ${unqualified ? html`<span>${texts[id]?.not_qualified}</span>` : nothing}
      </p>
    </div>
    <div class="hand board">
      ${row(store, shown?.board, 5, { label: words.get("felt.board"), five, dealers: dealersFive })}
    </div>
    <div class="hand own">
      ${row(store, shown?.hole_cards, 2, { label: you, five })}
      <p class="named" lang=${words.language}>${named(you, players, dealers, "own")}</p>
    </div>`;
}
