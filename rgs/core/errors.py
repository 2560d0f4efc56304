"""Every error that a caller can get, one class for each reason.

`rgs.api.errors` maps each class to a gRPC code in one table; a test proves that every class has a row. Messages and
metadata name fields, limits and values that the caller sent or may see. They never hold secrets.
"""

from __future__ import annotations

from rgs.core.tlog.errors import FormatError as FormatError  # noqa: PLC0414 - offered here with all others
from rgs.core.tlog.errors import RgsError as RgsError  # noqa: PLC0414
from rgs.core.tlog.errors import VerificationError as VerificationError  # noqa: PLC0414

# --- the request is wrong, whatever the state ------------------------------------------------------------------------


class InvalidFieldError(RgsError):
    """A field is missing, malformed or outside its limit."""

    reason = "INVALID_FIELD"


class UnknownFieldError(RgsError):
    """The message has fields that this version does not know. They could change its meaning."""

    reason = "UNKNOWN_FIELD"


class StakeBelowMinimumError(RgsError):
    """A stake below the table minimum (RULEBOOK C-8, U-10)."""

    reason = "STAKE_BELOW_MINIMUM"


class StakeAboveMaximumError(RgsError):
    """A stake above the table maximum (RULEBOOK C-8, U-10)."""

    reason = "STAKE_ABOVE_MAXIMUM"


class StakeStepError(RgsError):
    """A stake off the step: a payout could be part of a minor unit (RULEBOOK U-10)."""

    reason = "STAKE_NOT_MULTIPLE_OF_STEP"


class UnknownBetError(RgsError):
    """The game does not have the bet, or the player may not place it."""

    reason = "UNKNOWN_BET"


# --- the caller ------------------------------------------------------------------------------------------------------


class UnauthenticatedError(RgsError):
    """No certificate, or one that is not in the allow-list."""

    reason = "CERTIFICATE_NOT_ALLOWED"


class PermissionDeniedError(RgsError):
    """The party's role does not allow this method."""

    reason = "ROLE_NOT_ALLOWED"


# --- not found (or not this party's) ---------------------------------------------------------------------------------


class NotFoundError(RgsError):
    """Not found, or another party's. `metadata["kind"]` says what was looked for."""

    reason = "NOT_FOUND"


class UnknownRulesetError(RgsError):
    """No ruleset of that id is shipped."""

    reason = "UNKNOWN_RULESET"


# --- the state does not allow it -------------------------------------------------------------------------------------


class IllegalActionError(RgsError):
    """The action is not legal in this phase; `metadata` names rule, phase and the legal ones."""

    reason = "ILLEGAL_ACTION"


class InsufficientBalanceError(RgsError):
    """The balance of the participation does not cover the bets and the cheapest way to finish the round (U-11, R-3)."""

    reason = "INSUFFICIENT_BALANCE"


class InsufficientFundsError(RgsError):
    """The operator's wallet does not cover the purchase."""

    reason = "INSUFFICIENT_FUNDS"


class WalletRefusedError(RgsError):
    """The operator's wallet refuses for another reason than funds; `metadata["refusal"]` is its code."""

    reason = "WALLET_REFUSED"


class TransactionRolledBackError(RgsError):
    """The operator's wallet has rolled this transaction back. A later debit takes no money."""

    reason = "TRANSACTION_ROLLED_BACK"


class RegulatorRefusedError(RgsError):
    """The regulator's system refuses; `metadata["rejection"]` is its code."""

    reason = "REGULATOR_REFUSED"


class SessionClosedError(RgsError):
    """The session is closed."""

    reason = "SESSION_CLOSED"


class RoundOpenError(RgsError):
    """A round is still open; `metadata["round_id"]` names it."""

    reason = "ROUND_OPEN"


class RoundNotOpenError(RgsError):
    """The round has ended; its result is final."""

    reason = "ROUND_NOT_OPEN"


class RoundPausedError(RgsError):
    """The round is paused for a malfunction (RULEBOOK R-6); `malfunction_code` names it. No decision is taken."""

    reason = "ROUND_PAUSED"


class RoundNotPausedError(RgsError):
    """Only a round with a logged malfunction can be resumed or made void."""

    reason = "ROUND_NOT_PAUSED"


class ClocksDifferError(RgsError):
    """An admin accepts the server's clock, but the database's clock differs: neither is trusted."""

    reason = "CLOCKS_DIFFER"


class ReportNotDoneError(RgsError):
    """The report is not done yet, or has failed; `metadata["state"]` says which."""

    reason = "REPORT_NOT_DONE"


class SecondAdminError(RgsError):
    """A void is proposed by one admin and approved by another (ARCHITECTURE 2.20)."""

    reason = "SECOND_ADMIN_NEEDED"


class LastAdminError(RgsError):
    """The last allowed and valid certificate of an admin cannot be removed."""

    reason = "LAST_ADMIN"


class LossLimitError(RgsError):
    """The session's loss limit does not cover it."""

    reason = "LOSS_LIMIT"


class StakeLimitError(RgsError):
    """The session's stake limit does not cover it."""

    reason = "STAKE_LIMIT"


class DurationLimitError(RgsError):
    """The session's time has passed: no new rounds."""

    reason = "DURATION_LIMIT"


class SessionInactiveError(RgsError):
    """The jurisdiction's inactivity has passed: no new rounds and purchases in this session."""

    reason = "SESSION_INACTIVE"


class RetentionError(RgsError):
    """The law still requires the record of this player, or an operation is under way: nothing is erased."""

    reason = "RETENTION_PERIOD"


class DisabledError(RgsError):
    """An admin has disabled all play, the operator, the game or the player; `scope` says which. Dealt rounds go on."""

    reason = "DISABLED"


class FundingModeError(RgsError):
    """The session is funded bet by bet: there is no participation to buy or to end."""

    reason = "FUNDING_MODE"


class ParticipationMissingError(RgsError):
    """No right of participation has been bought in this session."""

    reason = "PARTICIPATION_MISSING"


class ParticipationEndedError(RgsError):
    """The participation has ended; it can neither be topped up nor played."""

    reason = "PARTICIPATION_ENDED"


class ParticipationOpenError(RgsError):
    """The participation must be ended first."""

    reason = "PARTICIPATION_OPEN"


class ParticipationCapError(RgsError):
    """All purchases of a participation together would exceed the jurisdiction's cap."""

    reason = "PARTICIPATION_CAP"


class AlreadySeatedError(RgsError):
    """The player already holds a participation in this regulator session."""

    reason = "ALREADY_SEATED"


class OperationPendingError(RgsError):
    """A purchase, an end or a close of this session is still under way. The server continues it; it must end first."""

    reason = "OPERATION_PENDING"


class TableOnlyError(RgsError):
    """The ruleset is a table game; it cannot be opened as a solo session."""

    reason = "TABLE_ONLY"


class GameNotOfferedError(RgsError):
    """No certificate shows the game's returns, or one of them is below the jurisdiction's floor."""

    reason = "GAME_NOT_OFFERED"


class JurisdictionError(RgsError):
    """The jurisdiction does not allow this (test regulator, development CA, currency)."""

    reason = "JURISDICTION_REFUSES"


class TooEarlyError(RgsError):
    """The jurisdiction's minimum time between round starts has not passed; `metadata["retry_after_ms"]`."""

    reason = "TOO_EARLY"


class NumberExpectedError(RgsError):
    """The stage or purchase number of the request is not the one expected next."""

    reason = "NUMBER_NOT_EXPECTED"


# --- a repetition, or a race -----------------------------------------------------------------------------------------


class IdempotencyConflictError(RgsError):
    """The party has used the request id before, for the same method, with other content."""

    reason = "IDEMPOTENCY_CONFLICT"


class CertificateKnownError(RgsError):
    """The certificate is in the allow-list, or was removed from it and stays denied."""

    reason = "CERTIFICATE_KNOWN"


class SessionChangedError(RgsError):
    """Another request changed the session at the same time: read it again and decide again."""

    reason = "SESSION_CHANGED"


# --- not now ---------------------------------------------------------------------------------------------------------


class UnavailableError(RgsError):
    """A service that is needed is down. Send the same request with the same request id again."""

    reason = "UNAVAILABLE"


class NotLoggedYetError(UnavailableError):
    """The statement is signed, and no published checkpoint of the transparency log covers it yet."""

    reason = "NOT_LOGGED_YET"


class GuardClosedError(UnavailableError):
    """A guard stops new rounds; `guard` names it. Dealt rounds go on."""

    reason = "GUARD_CLOSED"


class RngUnavailableError(UnavailableError):
    """The generator is in its error state; no new rounds, dealt ones are settled."""

    reason = "RNG_UNAVAILABLE"


class RegulatorUnavailableError(UnavailableError):
    """The regulator's system gives no ids. There is no round without them."""

    reason = "REGULATOR_UNAVAILABLE"


class WalletUnavailableError(UnavailableError):
    """The operator's wallet did not answer. The operation is kept and continued."""

    reason = "WALLET_UNAVAILABLE"


class ReconciliationBusyError(RgsError):
    """A node runs one reconciliation, and takes one submission of an operator, at a time."""

    reason = "RECONCILIATION_BUSY"


class ReconciliationFullError(RgsError):
    """An operator's submissions and reports fill the space that this node keeps for them."""

    reason = "RECONCILIATION_FULL"


class PartyLimitError(RgsError):
    """The party exceeds its share of a process: under way, each second, or open. `field` names the setting."""

    reason = "PARTY_LIMIT"


class StreamStalledError(RgsError):
    """The client of a stream has not read for too long. Requests without an answer may have taken effect."""

    reason = "STREAM_STALLED"


class StreamIdleError(UnavailableError):
    """No request came on a stream for too long."""

    reason = "STREAM_IDLE"


class DeadlineTooShortError(RgsError):
    """The call came without a deadline or with too little time left to finish it."""

    reason = "DEADLINE_TOO_SHORT"


# --- bad data --------------------------------------------------------------------------------------------------------


class RulesetError(RgsError):
    """A ruleset or jurisdiction file is refused when loaded: the message names the row and the limit."""

    reason = "RULESET_REFUSED"
