"""The two tables of docs/errors.md: the reasons, and the keys of the metadata. The rest of the page is written by hand.

`python -m rgs.api.errors_page docs/errors.md` renews the tables; a test compares them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rgs.api.errors import ERRORS, RETRY_AFTER_MS

METADATA: Final[Mapping[str, str]] = {
    # What holds of every error.
    "field": "the field of the request that is at fault (`bets[0].amount_minor`; `bets.ante` for a bet by its name),"
    " or the setting of the server that sets the limit",
    "value": "what was sent, or what there is where nothing was sent; cut where it is long",
    "limit": "the bound that `value` breaks, or what it must be, in a word or two",
    RETRY_AFTER_MS: "milliseconds until the request may be sent again, as in `RetryInfo`",
    "rule": "the rule of the game",
    "incident": "the id of a server fault in the server's log",
    "truncated": "`true`: the details were too large and were left out",
    # What is meant.
    "kind": "what was not found, or the message that could not be read",
    "session_id": "the session",
    "round_id": "the round",
    "participation_id": "the participation",
    "operation_id": "the operation that is under way in the session",
    "transaction_id": "the wallet's transaction",
    "fingerprint": "the certificate: SHA-256 of its DER form, in hexadecimal",
    "hash": "the statement",
    "origin": "the shard of the log",
    "operator": "the operator",
    "party": "the party",
    "player": "the operator's pseudonym of the player",
    "role": "the party's role",
    "method": "the method that was called",
    "currency": "the currency, ISO 4217",
    "jurisdiction": "the jurisdiction",
    "game": "the game's ruleset id",
    "grant_id": "the free bet",
    "game_code": "the round's code, as the player saw it",
    "date": "the requested day",
    "ruleset_id": "the ruleset",
    "ruleset_sha256": "its hash",
    "bet": "the bet",
    "odds": "what the bet pays",
    "row": "the row of a submission, from 1",
    "index": "the stage within a report, from 0",
    # How it stands.
    "action": "the action, by its name in `Action`",
    "legal": "the actions that are legal now, by their names in `Action`, with spaces between them",
    "phase": "where the round stands, by its name in `Phase`",
    "status": "where the round stands, by its name in `RoundStatus`",
    "state": "where the reconciliation stands, by its name in `ReportState`; or the state of a table",
    "step": "what a table was to do",
    "table": "the name of a table",
    "scope": "what is disabled, by its name in `SwitchScope`",
    "subject": "the name of what is disabled; for a player: the operator, a slash and the player",
    "guard": "the guard",
    "latched": "`True`: the guard stays closed until an admin clears it",
    "code": "the reason, as a code of the guard or of the admin; of a peer that is silent, gRPC's code",
    "malfunction_code": "the malfunction",
    "balance_minor": "the balance of the participation",
    "bought_minor": "what has been bought so far",
    "refusal": "the code of the operator's wallet; with `TRANSACTION_ROLLED_BACK` it may be a reason of here",
    "contradiction": "the field in which an answer of the wallet or of the regulator contradicts the request",
    "rejection": "the code of the regulator's system",
    "request_id": "the request",
    "file": "the file of the store",
    "failed_polls": "how often the allow-list could not be read",
}
"""Every key in the metadata of an ErrorInfo, and its meaning."""

_TABLE: Final = re.compile(r"(?m)^(<!-- table: (\w+) -->\n)(?:\|.*\n)*")
"""The place of a table in the page, with its present table."""


def format_reasons() -> str:
    """The table of reasons."""
    rows = [
        f"| `{reason}` | `{row.code.name}` | {row.meaning} | {f'{row.retry_ms / 1000:g} s' if row.retry_ms else ''} |"
        for reason, row in ERRORS.items()
    ]
    return "\n".join(["| reason | code | meaning | again after |", "|---|---|---|---|", *rows, ""])


def format_metadata() -> str:
    """The table of keys."""
    rows = [f"| `{key}` | {meaning} |" for key, meaning in METADATA.items()]
    return "\n".join(["| key | what stands under it |", "|---|---|", *rows, ""])


def renewed(page: str) -> str:
    """The page with both tables as they are now."""
    tables = {"reasons": format_reasons, "metadata": format_metadata}
    return _TABLE.sub(lambda found: found[1] + tables[found[2]](), page)


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(renewed(page.read_text("utf-8")), "utf-8")
