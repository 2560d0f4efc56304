"""Every error that a caller can get, one class for each reason.

`rgs.api.errors` maps each class to a gRPC code in one table; a test proves that every class has a row. Messages and
metadata name fields, limits and values that the caller sent or may see. They never hold secrets.
"""

from __future__ import annotations

from rgs.core.tlog.errors import FormatError as FormatError  # noqa: PLC0414 - offered here with all others
from rgs.core.tlog.errors import RgsError as RgsError  # noqa: PLC0414
from rgs.core.tlog.errors import VerificationError as VerificationError  # noqa: PLC0414

# --- the request is wrong, whatever the state ------------------------------------------------------------------------


class InvalidFieldError(RgsError, reason="INVALID_FIELD"):
    """A field is missing, malformed or outside its limit."""


class UnknownFieldError(RgsError, reason="UNKNOWN_FIELD"):
    """The message has fields that this version does not know. They could change its meaning."""


class StakeBelowMinimumError(RgsError, reason="STAKE_BELOW_MINIMUM"):
    """A stake below the table minimum (RULEBOOK C-8, U-10)."""


class StakeAboveMaximumError(RgsError, reason="STAKE_ABOVE_MAXIMUM"):
    """A stake above the table maximum (RULEBOOK C-8, U-10)."""


class StakeStepError(RgsError, reason="STAKE_NOT_MULTIPLE_OF_STEP"):
    """A stake off the step: a payout could be part of a minor unit (RULEBOOK U-10)."""


class UnknownBetError(RgsError, reason="UNKNOWN_BET"):
    """The game does not have the bet, or the player may not place it."""


class TableConfigError(RgsError, reason="TABLE_CONFIG_REFUSED"):
    """The configuration of a table is refused; the message names the row, its value and the limit."""


# --- the caller ------------------------------------------------------------------------------------------------------


class UnauthenticatedError(RgsError, reason="CERTIFICATE_NOT_ALLOWED"):
    """No certificate, or one that is not in the allow-list."""


class PermissionDeniedError(RgsError, reason="ROLE_NOT_ALLOWED"):
    """The party's role does not allow this method."""


# --- not found (or not this party's) ---------------------------------------------------------------------------------


class NotFoundError(RgsError, reason="NOT_FOUND"):
    """Not found, or another party's. `metadata["kind"]` says what was looked for."""


class UnknownRulesetError(RgsError, reason="UNKNOWN_RULESET"):
    """No ruleset of that id is shipped."""


# --- the state does not allow it -------------------------------------------------------------------------------------


class IllegalActionError(RgsError, reason="ILLEGAL_ACTION"):
    """The action is not legal in this phase; `metadata` names rule, phase and the legal ones."""


class InsufficientBalanceError(RgsError, reason="INSUFFICIENT_BALANCE"):
    """The balance of the participation does not cover the bets and the cheapest way to finish the round (U-11, R-3)."""


class InsufficientFundsError(RgsError, reason="INSUFFICIENT_FUNDS"):
    """The operator's wallet does not cover the purchase."""


class WalletRefusedError(RgsError, reason="WALLET_REFUSED"):
    """The operator's wallet refuses for another reason than funds; `metadata["refusal"]` is its code."""


class TransactionRolledBackError(RgsError, reason="TRANSACTION_ROLLED_BACK"):
    """The operator's wallet has rolled this transaction back. A later debit takes no money."""


class RegulatorRefusedError(RgsError, reason="REGULATOR_REFUSED"):
    """The regulator's system refuses; `metadata["rejection"]` is its code."""


class SessionClosedError(RgsError, reason="SESSION_CLOSED"):
    """The session is closed."""


class RoundOpenError(RgsError, reason="ROUND_OPEN"):
    """A round is still open; `metadata["round_id"]` names it."""


class RoundNotOpenError(RgsError, reason="ROUND_NOT_OPEN"):
    """The round has ended; its result is final."""


class RoundPausedError(RgsError, reason="ROUND_PAUSED"):
    """The round is paused for a malfunction (RULEBOOK R-6); `malfunction_code` names it. No decision is taken."""


class RoundNotPausedError(RgsError, reason="ROUND_NOT_PAUSED"):
    """Only a round with a logged malfunction can be resumed or made void."""


class TableStateError(RgsError, reason="TABLE_STATE"):
    """The state of the table does not allow it; `metadata["state"]` and `metadata["step"]` say what was tried when."""


class TableChangedError(RgsError, reason="TABLE_CHANGED"):
    """The table has moved on: what the request names is over, or has not begun. Read the table and decide again."""


class BetsReservedError(RgsError, reason="BETS_RESERVED"):
    """Bets are reserved at a table: nothing is bought, paid out or closed until they are returned or played."""


class NotSeatedError(RgsError, reason="NOT_SEATED"):
    """The session has no seat at its table: join first."""


class AlreadyAtTableError(RgsError, reason="ALREADY_AT_TABLE"):
    """The player sits at the table with another session; `metadata["session_id"]` names it."""


class TableFundingError(RgsError, reason="TABLE_NEEDS_PARTICIPATION"):
    """A bet at a table is a reservation in a participation: there is none where players are funded bet by bet."""


class JoinLimitError(RgsError, reason="JOIN_LIMIT"):
    """The player joins and leaves too often; `metadata["retry_after_ms"]`."""


class ChatClosedError(RgsError, reason="CHAT_CLOSED"):
    """The table has no chat, or none while its cards are secret; or the player writes too fast."""


class TableFullError(RgsError, reason="TABLE_FULL"):
    """Every seat of the table is taken or reserved (RULEBOOK T-5)."""


class BoxTakenError(RgsError, reason="BOX_TAKEN"):
    """The box is another player's, or reserved for one (RULEBOOK T-5, F-13)."""


class TablesAtOnceError(RgsError, reason="TABLES_AT_ONCE"):
    """The player sits at as many tables as the jurisdiction or one of the tables allows (RULEBOOK T-4)."""


class DeviceReplacedError(RgsError, reason="DEVICE_REPLACED"):
    """Another device of the player has taken the seat (RULEBOOK T-3)."""


class PlayerBarredError(RgsError, reason="PLAYER_BARRED"):
    """The operator or an admin has barred the player from this table (RULEBOOK T-5)."""


class ClocksDifferError(RgsError, reason="CLOCKS_DIFFER"):
    """An admin accepts the server's clock, but the database's clock differs: neither is trusted."""


class ReportNotDoneError(RgsError, reason="REPORT_NOT_DONE"):
    """The report is not done yet, or has failed; `metadata["state"]` says which."""


class SecondAdminError(RgsError, reason="SECOND_ADMIN_NEEDED"):
    """A void is proposed by one admin and approved by another (ARCHITECTURE 2.20)."""


class LastAdminError(RgsError, reason="LAST_ADMIN"):
    """The last allowed and valid certificate of an admin cannot be removed."""


class LossLimitError(RgsError, reason="LOSS_LIMIT"):
    """The session's loss limit does not cover it."""


class StakeLimitError(RgsError, reason="STAKE_LIMIT"):
    """The session's stake limit does not cover it."""


class DurationLimitError(RgsError, reason="DURATION_LIMIT"):
    """The session's time has passed: no new rounds."""


class SessionInactiveError(RgsError, reason="SESSION_INACTIVE"):
    """The jurisdiction's inactivity has passed: no new rounds and purchases in this session."""


class RetentionError(RgsError, reason="RETENTION_PERIOD"):
    """The law still requires the record of this player, or an operation is under way: nothing is erased."""


class DisabledError(RgsError, reason="DISABLED"):
    """An admin has disabled all play, the operator, the game or the player; `scope` says which. Dealt rounds go on."""


class FreeBetRefusedError(RgsError, reason="FREE_BET_REFUSED"):
    """The free bet cannot be played in this round: used, cancelled, expired, or for another game, currency or ante."""


class FundingModeError(RgsError, reason="FUNDING_MODE"):
    """The session is funded bet by bet: there is no participation to buy or to end."""


class ParticipationMissingError(RgsError, reason="PARTICIPATION_MISSING"):
    """No right of participation has been bought in this session."""


class ParticipationEndedError(RgsError, reason="PARTICIPATION_ENDED"):
    """The participation has ended; it can neither be topped up nor played."""


class ParticipationOpenError(RgsError, reason="PARTICIPATION_OPEN"):
    """The participation must be ended first."""


class ParticipationCapError(RgsError, reason="PARTICIPATION_CAP"):
    """All purchases of a participation together would exceed the jurisdiction's cap."""


class AlreadySeatedError(RgsError, reason="ALREADY_SEATED"):
    """The player already holds a participation in this regulator session."""


class OperationPendingError(RgsError, reason="OPERATION_PENDING"):
    """A purchase, an end or a close of this session is still under way. The server continues it; it must end first."""


class TableOnlyError(RgsError, reason="TABLE_ONLY"):
    """The ruleset is a table game; it cannot be opened as a solo session."""


class GameNotOfferedError(RgsError, reason="GAME_NOT_OFFERED"):
    """No certificate shows the game's returns, or one of them is below the jurisdiction's floor."""


class JurisdictionError(RgsError, reason="JURISDICTION_REFUSES"):
    """The jurisdiction does not allow this (test regulator, development CA, currency)."""


class LaunchUsedError(RgsError, reason="LAUNCH_USED"):
    """The launch has opened its session already."""


class LaunchExpiredError(RgsError, reason="LAUNCH_EXPIRED"):
    """The time in which the launch could open its session is over."""


class TooEarlyError(RgsError, reason="TOO_EARLY"):
    """The jurisdiction's minimum time between round starts has not passed; `metadata["retry_after_ms"]`."""


class NumberExpectedError(RgsError, reason="NUMBER_NOT_EXPECTED"):
    """The round or purchase number of the request is not the one expected next."""


# --- a repetition, or a race -----------------------------------------------------------------------------------------


class IdempotencyConflictError(RgsError, reason="IDEMPOTENCY_CONFLICT"):
    """The party has used the request id before, for the same method, with other content."""


class ReferenceUsedError(RgsError, reason="OPERATOR_REFERENCE_USED"):
    """Another session of the operator was opened with this operator_reference."""


class CertificateKnownError(RgsError, reason="CERTIFICATE_KNOWN"):
    """The certificate is in the allow-list, or was removed from it and stays denied."""


class SessionChangedError(RgsError, reason="SESSION_CHANGED"):
    """Another request changed the session at the same time: read it again and decide again."""


# --- not now ---------------------------------------------------------------------------------------------------------


class UnavailableError(RgsError, reason="UNAVAILABLE"):
    """A service that is needed is down. Send the same request with the same request id again."""


class NotLoggedYetError(UnavailableError, reason="NOT_LOGGED_YET"):
    """The statement is signed, and no published checkpoint of the transparency log covers it yet."""


class GuardClosedError(UnavailableError, reason="GUARD_CLOSED"):
    """A guard stops new rounds; `guard` names it. Dealt rounds go on."""


class RngUnavailableError(UnavailableError, reason="RNG_UNAVAILABLE"):
    """The generator is in its error state; no new rounds, dealt ones are settled."""


class RegulatorUnavailableError(UnavailableError, reason="REGULATOR_UNAVAILABLE"):
    """The regulator's system gives no ids. There is no round without them."""


class WalletUnavailableError(UnavailableError, reason="WALLET_UNAVAILABLE"):
    """The operator's wallet did not answer. The operation is kept and continued."""


class ReconciliationBusyError(RgsError, reason="RECONCILIATION_BUSY"):
    """A node runs one reconciliation, and takes one submission of an operator, at a time."""


class ReconciliationFullError(RgsError, reason="RECONCILIATION_FULL"):
    """An operator's submissions and reports fill the space that this node keeps for them."""


class PartyLimitError(RgsError, reason="PARTY_LIMIT"):
    """The party exceeds its share of a process: under way, each second, or open. `field` names the setting."""


class StreamStalledError(RgsError, reason="STREAM_STALLED"):
    """The client of a stream has not read for too long. Requests without an answer may have taken effect."""


class StreamIdleError(UnavailableError, reason="STREAM_IDLE"):
    """No request came on a stream for too long."""


class DeadlineTooShortError(RgsError, reason="DEADLINE_TOO_SHORT"):
    """The call came without a deadline or with too little time left to finish it."""


# --- bad data --------------------------------------------------------------------------------------------------------


class RulesetError(RgsError, reason="RULESET_REFUSED"):
    """A ruleset or jurisdiction file is refused when loaded: the message names the row and the limit."""
