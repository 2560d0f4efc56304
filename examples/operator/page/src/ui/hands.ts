/** The cards of one hand against the dealer, with both combinations named (F-10). */

import { html, nothing, type TemplateResult } from "lit";

import { isOver } from "../model/rules.js";
import { capital, textOf } from "../model/texts.js";
import type { Game, Hand } from "../model/types.js";
import type { Store } from "../state/store.js";
import { row } from "./cards.js";

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
  const over = Boolean(shown?.dealer_hand) || (shown?.status !== undefined && isOver({ round_id: "", status: shown.status }));
  const five = over ? shown?.player_hand?.cards : undefined;
  const named = (hand: Hand | undefined): string => (hand?.category ? textOf(store.texts, id, "hands", hand.category) : "");
  const dealt = Boolean(shown?.hole_cards?.length) || Boolean(shown?.board?.length);
  const dealer = capital(store.texts[id]?.dealer ?? store.t("felt.dealer"));
  const unqualified = over && shown?.dealer_hand && !shown.dealer_qualifies;
  return html`<div class="hand dealer">
      ${row(store, shown?.dealer_cards, 2, { backs: dealt, label: dealer, five: over ? shown?.dealer_hand?.cards : undefined })}
      <p class="named">
        <span>${dealer}${named(shown?.dealer_hand) ? `: ${named(shown?.dealer_hand)}` : nothing}</span>
        ${unqualified ? html`<span>${store.texts[id]?.not_qualified ?? store.t("felt.not_qualified")}</span>` : nothing}
      </p>
    </div>
    <div class="hand">
      ${row(store, shown?.board, 5, { label: store.t("felt.board"), five, dealers: over ? shown?.dealer_hand?.cards : undefined })}
    </div>
    <div class="hand own">
      ${row(store, shown?.hole_cards, 2, { label: store.t(own ? "felt.you" : "felt.shared"), five })}
      <p class="named">
        <span>${store.t(own ? "felt.you" : "felt.shared")}${named(shown?.player_hand) ? `: ${named(shown?.player_hand)}` : nothing}</span>
      </p>
    </div>`;
}
