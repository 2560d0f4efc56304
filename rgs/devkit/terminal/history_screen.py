"""The player's history (R-5, the whole account): a list in pages, each round in full, and its proof.

List and round are shown as the server sends them. The proof does not rely on them: it reads the session's signed
statements from the first on, checks them (`rgs.devkit.terminal.proof`), and compares them with the history. If a step
fails, the screen says which.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from rgs.core.amounts import format_money
from rgs.core.errors import FormatError, VerificationError
from rgs.core.times import format_date, format_time
from rgs.devkit.client import CallError, Client
from rgs.devkit.terminal.cards_art import card_text
from rgs.devkit.terminal.i18n import Choice
from rgs.devkit.terminal.key_path import Keys
from rgs.devkit.terminal.prompt import Prompt
from rgs.devkit.terminal.proof import RoundProof
from rgs.devkit.terminal.screen import line, table_of
from rgs.v1 import history_pb2 as pb
from rgs.v1.catalog_pb2 import Game
from rgs.v1.common_pb2 import DECIDED_BY_PLAYER, DecidedBy, Phase, RoundStatus, RoundView

ROWS: Final = 9
"""Rounds on each page: a digit is the key of each."""
_DECK_SHOWN: Final = 9
_HASH_SHOWN: Final = 16


class HistoryScreen:
    """The history of one player on one screen. `games`: the catalog by ruleset id."""

    def __init__(self, client: Client, prompt: Prompt, keys: Keys, games: Mapping[str, Game], player: str) -> None:
        self._client = client
        self._prompt = prompt
        self._keys = keys
        self._games = games
        self._player = player

    def browse(self) -> None:
        """Show pages and rounds until the player goes back. CallError, InputEndedError."""
        tokens = [""]
        while True:
            request = pb.ListRoundsRequest(player=self._player, page_size=ROWS, page_token=tokens[-1])
            page = self._client.call(self._client.history.ListRounds, request)
            self._prompt.clear()
            self._prompt.say(self._list(page.rounds, len(tokens)), "")
            names = ["older"] * bool(page.next_page_token) + ["newer"] * (len(tokens) > 1) + ["back"]
            choices = {name: self._prompt.words.choice(name) for name in names}
            self._prompt.say("   ".join(map(str, choices.values())))
            rows = {str(number): Choice(str(number), "") for number in range(1, len(page.rounds) + 1)}
            match self._prompt.pick({**choices, **rows}, default="back"):
                case "back":
                    return
                case "older":
                    tokens.append(page.next_page_token)
                case "newer":
                    tokens.pop()
                case number:
                    self._show(page.rounds[int(number) - 1])

    def _list(self, rows: Any, page: int) -> RenderableType:
        """R-5 (the whole account): date, game, stakes, winnings."""
        words = self._prompt.words
        if not rows:
            return line(words("past.none"))
        heads = [words(f"past.{name}") for name in ("no", "date", "code", "game")]
        table = table_of(" ", *heads, right=[words(f"past.{name}") for name in ("staked", "returned")])
        for number, row in enumerate(rows, 1):
            amounts = [format_money(amount, row.currency) for amount in (row.staked_minor, row.returned_minor)]
            table.add_row(
                " ", str(number), format_date(row.start_time.ToMilliseconds()), row.game_code, row.game, *amounts
            )
        result = f"{words('past.page', page=page)}, {words('past.which')}"
        return Group(table, line(result, "dim"))

    # --- one round ----------------------------------------------------------------------------------------------------

    def _show(self, row: pb.RoundSummary) -> None:
        request = pb.GetRoundRecordRequest(round_id=row.round_id)
        record = self._client.call(self._client.history.GetRoundRecord, request).records[0]
        self._prompt.clear()
        self._prompt.say(self._record(record), "")
        while self._prompt.choose("verify", "back", default="back") == "verify":
            self._prompt.say(*self._proved(record), "")

    def _record(self, record: pb.RoundRecord) -> RenderableType:
        words, screen, row, round_ = self._prompt.words, self._prompt.screen, record.summary, record.round
        game = self._games[row.game].family if row.game in self._games else ""
        status = words.known(f"round_status.{RoundStatus.Name(row.status).removeprefix('ROUND_STATUS_')}", "?")
        ids = (
            (
                words("past.played"),
                f"{format_date(row.start_time.ToMilliseconds())} {row.game_code}  {row.game}  {status}",
            ),
            (words("past.round_id"), row.round_id),
            (words("head.session_id"), row.regulator_session_id),
            (words("head.participation_id"), row.regulator_participation_id),
        )
        parts: list[RenderableType] = [Text.assemble((f"  {name} ", "dim"), value) for name, value in ids]
        parts.append(screen.felt(round_, game, row.currency))
        parts += [line(text) for text in self._decisions(round_, game, row.currency)]
        parts.append(screen.outcome(round_, game, row.currency))
        return Group(*parts)

    def _decisions(self, round_: RoundView, family: str, currency: str) -> list[str]:
        words, result = self._prompt.words, []
        for taken in round_.actions:
            phase = Phase.Name(taken.phase).removeprefix("PHASE_")
            by = f"decided_by.{DecidedBy.Name(taken.by).removeprefix('DECIDED_BY_')}"
            result.append(
                words(
                    "past.action_cost" if taken.amount_minor else "past.action",
                    time=format_time(taken.time.ToMilliseconds())[11:19],
                    phase=words.known(f"phase.{phase}", phase),
                    action=self._prompt.screen.action(family, taken.action).text,
                    **({"amount": format_money(taken.amount_minor, currency)} if taken.amount_minor else {}),
                )
                + (f" ({words(by)})" if taken.by != DECIDED_BY_PLAYER and words.has(by) else "")
            )
        return result

    # --- its proof ----------------------------------------------------------------------------------------------------

    def _proved(self, record: pb.RoundRecord) -> list[RenderableType]:
        """The steps of the proof, or the step that fails."""
        try:
            proof = RoundProof(self._client, self._keys, record)
        except (VerificationError, FormatError) as error:
            return self._prompt.screen.broken(error.metadata.get("check", "form"), error.message)
        except CallError as error:
            return [
                line(
                    f"✗ {self._prompt.words('proof.not_verified', error=self._prompt.screen.refusal(error))}", "yellow"
                )
            ]
        return [
            *(line(f"✓ {text}", "green" if self._keys.anchored else "yellow") for text in self._steps(proof, record)),
            self._prompt.screen.verified([proof.opening, proof.final], anchored=self._keys.anchored),
        ]

    def _steps(self, proof: RoundProof, record: pb.RoundRecord) -> list[str]:
        words, body, revealed = self._prompt.words, proof.final.body, proof.revealed
        root, instance = f"{self._keys.root[:_HASH_SHOWN]}…", proof.opening.body["instance"]
        steps = [words("proof.step.key", root=root, instance=instance)]
        if proof.opening.key.development:
            steps.append(words("proof.step.development"))
        steps.append(words("proof.step.session", count=proof.links))
        if "transcript" in revealed:
            plain = self._prompt.screen.plain
            top = " ".join(card_text(card, plain=plain).plain for card in revealed["deck"][:_DECK_SHOWN])
            steps += [
                words("proof.step.commitment", count=len(revealed["transcript"]) // 2),
                words("proof.step.transcript", cards=top),
                words("proof.step.cards"),
            ]
        else:
            steps.append(words("proof.step.unrevealed"))
        names = ("balance_before", "staked", "returned", "balance_after")
        amounts = [format_money(int(body[f"{name}_minor"]), record.summary.currency) for name in names]
        before, staked, returned, after = amounts
        steps.append(words("proof.step.settlement", before=before, staked=staked, returned=returned, after=after))
        return [*steps, words("proof.step.shown")]
