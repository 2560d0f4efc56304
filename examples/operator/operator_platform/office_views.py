"""What the back office shows of the game server's views: rounds as the player saw them, and their statements."""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode
from typing import Any, Final

from .markup import Html, join, major, named_rows, render, table

SUITS: Final = {"s": ("♠", "spades"), "h": ("♥", "hearts"), "d": ("♦", "diamonds"), "c": ("♣", "clubs")}
RANKS: Final = {"T": "10", "J": "jack", "Q": "queen", "K": "king", "A": "ace"}
STATEMENTS: Final = ("opening", "final", "table_round", "table_deal", "table_final")


def card(text: str) -> Html:
    """A card as it looks, with its name for those who do not see it."""
    rank, suit = text[:-1], text[-1:]
    sign, name = SUITS[suit]
    return render(
        '<span class="card {suit}" role="img" aria-label="{name}" data-card="{text}">{face}</span>',
        suit=suit,
        name=f"{RANKS.get(rank, rank)} of {name}",
        text=text,
        face=f"{rank.replace('T', '10')}{sign}",
    )


def cards(view: dict[str, Any], name: str) -> Html:
    """The cards of a field."""
    return join([card(one) for one in view.get(name, [])]) or Html("-")


def word(value: str) -> str:
    """The last part of the name of an enum: "ACTION_PLAY_4X" is "play 4x"."""
    for prefix in ("ACTION_", "BET_RESULT_", "DECIDED_BY_", "OUTCOME_", "PHASE_", "ROUND_STATUS_", "SESSION_STATUS_"):
        value = value.removeprefix(prefix)
    return value.replace("_", " ").lower()


class RoundPage:
    """One record of a round as HTML. `amount` turns minor units into text."""

    def __init__(self, record: dict[str, Any], exponent: int) -> None:
        self._record = record
        self._summary: dict[str, Any] = record["summary"]
        self._round: dict[str, Any] = record.get("round", {})
        self._exponent = exponent

    def _amount(self, value: object) -> str:
        return major(int(str(value or 0)), self._exponent, self._summary.get("currency", ""))

    def html(self, receipt_path: str, root: str) -> Html:
        """All of it. `root` is the fingerprint of the root that the verdict is asked against."""
        return join([self._head(), self._cards(), self._decisions(), self._money(), self._proof(receipt_path, root)])

    def _head(self) -> Html:
        summary = self._summary
        names = ("game_code", "game", "round_no", "start_time", "end_time", "round_id", "session_id")
        ids = ("regulator_session_id", "regulator_participation_id")
        rows: list[list[object]] = [[name.replace("_", " "), summary.get(name, "-")] for name in (*names, *ids)]
        rows.append(["status", word(summary.get("status", ""))])
        if self._round.get("malfunction_code"):
            rows.append(["malfunction", self._round["malfunction_code"]])
        return named_rows(rows)

    def _cards(self) -> Html:
        view = self._round
        best = [view.get(name, {}).get("category", "").replace("_", " ") for name in ("player_hand", "dealer_hand")]
        qualifies = "qualifies" if view.get("dealer_qualifies") else "does not qualify"
        return render(
            '<h2>As the player saw it</h2><p>Player</p><p class="cards">{player} <small>{best}</small></p>'
            '<p>Board</p><p class="cards">{board}</p>'
            '<p>Dealer</p><p class="cards">{dealer} <small>{dealer_best} ({qualifies})</small></p><p>{outcome}</p>',
            player=cards(view, "hole_cards"),
            best=best[0],
            board=cards(view, "board"),
            dealer=cards(view, "dealer_cards"),
            dealer_best=best[1],
            qualifies=qualifies,
            outcome=word(view.get("outcome", "")),
        )

    def _decisions(self) -> Html:
        rows: list[list[object]] = [
            [
                one.get("time", ""),
                word(one.get("phase", "")),
                word(one.get("action", "")),
                self._amount(one.get("amount_minor")),
                word(one.get("by", "")),
            ]
            for one in self._round.get("actions", [])
        ]
        return join([Html("<h2>Decisions</h2>"), table(["time", "phase", "decision", "cost", "by"], rows)])

    def _money(self) -> Html:
        settled: list[list[object]] = [
            [
                one["bet"],
                self._amount(one.get("stake_minor")),
                word(one.get("result", "")),
                self._amount(one.get("returned_minor")),
            ]
            for one in self._round.get("settlement", [])
        ]
        placed: list[list[object]] = [
            [one["bet"], self._amount(one.get("amount_minor")), "", ""] for one in self._round.get("bets", [])
        ]
        total: list[object] = [
            "all",
            self._amount(self._round.get("staked_minor")),
            "",
            self._amount(self._round.get("returned_minor")),
        ]
        rows = [*(settled or placed), total]
        return join([Html("<h2>Bets</h2>"), table(["bet", "stake", "result", "returned"], rows), self._free_bet()])

    def _free_bet(self) -> Html:
        if not self._round.get("grant_id"):
            return Html("")
        return render(
            "<p>Free bet {grant}: the campaign has paid {granted} of the stakes, and got {reclaimed} back.</p>",
            grant=self._round["grant_id"],
            granted=self._amount(self._round.get("granted_minor")),
            reclaimed=self._amount(self._round.get("reclaimed_minor")),
        )

    def _proof(self, receipt_path: str, root: str) -> Html:
        """The verdict, which the script of the page computes in this browser; what it was computed from; how to have it
        computed elsewhere.
        """
        head = render(
            '<h2>Proof</h2><div id="proof" role="status" data-receipt="{path}" data-root="{root}" data-shown="{shown}">'
            "<p>Not verified here: the script of this page is missing (`make page`), or may not run.</p>"
            '</div><p>To have it verified elsewhere, save the <a href="{path}" download>receipt</a> and open it with '
            '<a href="/verify.html">verify.html</a>.</p><h3>Statements</h3>',
            path=receipt_path,
            root=root,
            shown=json.dumps(self._round, ensure_ascii=False),
        )
        found = [statement(name, b64decode(self._record[name])) for name in STATEMENTS if self._record.get(name)]
        return join([head, *found])


def statement(name: str, envelope: bytes) -> Html:
    """A signed statement: its hash, who signed it, and what it says."""
    digest = hashlib.sha256(b"\x00" + envelope).hexdigest()
    try:
        outer = json.loads(envelope)
        payload = json.loads(b64decode(outer["payload"]))
        signed_by = ", ".join(str(one.get("keyid", "")) for one in outer["signatures"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return render("<h3>{name}</h3><p>Not a statement that can be read.</p>", name=name)
    return render(
        "<details><summary>{name} <code>{digest}</code></summary><p>key {signed_by}</p><pre>{text}</pre></details>",
        name=name.replace("_", " "),
        digest=digest,
        signed_by=signed_by,
        text=json.dumps(payload, indent=1, ensure_ascii=False),
    )
