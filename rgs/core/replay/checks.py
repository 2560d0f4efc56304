"""The checks of the replay, in the order in which they are made (docs/verify.md describes each).

A failed check is a `VerificationError` whose `metadata["check"]` is number and name, such as "13 transcript". The
modules that make the checks mark them with these numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rgs.core.errors import VerificationError


@dataclass(frozen=True, slots=True)
class Check:
    """One numbered demand. `label` is how failures name it."""

    number: int
    name: str
    demand: str

    @property
    def label(self) -> str:
        """Number and name, "13 transcript"."""
        return f"{self.number} {self.name}"

    def failure(self, message: str, **metadata: str) -> VerificationError:
        """The error to raise where this demand is not met."""
        return VerificationError(message, check=self.label, **metadata)


# --- every line ---
LINE: Final = Check(1, "line", "the export line is in its one form")
ENVELOPE: Final = Check(2, "envelope", "the envelope is a DSSE envelope of one signature in its one form")
KEY: Final = Check(
    3, "key", "the signing key has the role that the kind demands, a path to the root, and the signature verifies"
)
SCHEMA: Final = Check(4, "schema", "the payload is canonical, has exactly the fields of its kind, and its times exist")
PRIVATE: Final = Check(5, "private", "a private block hashes with its salt to what the statement holds")
# --- the two orders ---
NUMBER: Final = Check(6, "number", "the statements of an instance are numbered without gap from 1")
SESSION: Final = Check(7, "session", "the links of a session stand in order, each naming the hash of the one before")
# --- an opening ---
RULES: Final = Check(
    8, "rules", "ruleset and jurisdiction are known by id, version and hash, and what they limit is kept"
)
DEAL: Final = Check(9, "deal", "the deal core is one for all seats of the round, and the seat is proved to be in it")
STAKES: Final = Check(10, "stakes", "the opening bets are the game's, within the limits and on the step")
# --- a final ---
OPENING: Final = Check(
    11, "opening", "the final answers the session's open opening, with the fields that its status demands"
)
COMMITMENT: Final = Check(12, "commitment", "salt and transcript give the commitment of the opening")
TRANSCRIPT: Final = Check(13, "transcript", "the transcript is exactly consumed and gives the deck")
CARDS: Final = Check(14, "cards", "the deck dealt by the ruleset gives every card shown")
ACTIONS: Final = Check(
    15, "actions", "every action is legal in its phase, rightly priced, covered, in order of time, and hashed"
)
HANDS: Final = Check(
    16, "hands", "both hands, their best five, the dealer's qualification and the outcome are those of the cards"
)
SETTLEMENT: Final = Check(17, "settlement", "every bet is settled as ruleset and outcome demand")
BALANCE: Final = Check(18, "balance", "before - staked + returned = after, in every round, purchase and participation")
VOID: Final = Check(
    19,
    "void",
    "a void has a logged malfunction of its round and two admins' approvals behind it, and returns every stake",
)
# --- the whole ---
DRAWS: Final = Check(20, "draws", "every draw of an instance stands in one round or one discarded_draw")
INSTANCE: Final = Check(21, "instance", "an instance has one start and one end, and agrees with its node's other boots")
SCOPE: Final = Check(22, "scope", "what the files leave out is named by an export_scope")
IDS: Final = Check(
    23, "ids", "the regulator's ids are there where they are required, and no id or transaction serves two things"
)
# --- the rounds of a table ---
TABLE: Final = Check(
    24, "table", "the rounds of a table are numbered without gap, and each names the end of the one before"
)
TABLE_DEAL: Final = Check(
    25, "table deal", "a table's deal follows what was fixed before it: rules, limits, betting window, hands"
)
WINDOWS: Final = Check(
    26, "windows", "every decision was taken in a window of its phase, a timer's at the end of one that ran out"
)
EARLY: Final = Check(27, "early", "no card and no end of a seat is dated before what it waits for")
SEATS: Final = Check(
    28, "seats", "the seats opened are those under the root that was signed before the draw, and each ends once"
)

CHECKS: Final = tuple(value for value in globals().values() if isinstance(value, Check))
"""All of them, in the order in which they are made."""
