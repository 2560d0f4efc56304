"""Every error that a caller can get, one class for each reason.

`rgs.api.errors` maps each class to a gRPC code in one table; a test proves that every class has a row. Messages and
metadata name fields, limits and values that the caller sent or may see. They never hold secrets.
"""

from __future__ import annotations

from rgs.core.tlog.errors import FormatError as FormatError  # noqa: PLC0414 - offered here with all others
from rgs.core.tlog.errors import RgsError as RgsError  # noqa: PLC0414
from rgs.core.tlog.errors import VerificationError as VerificationError  # noqa: PLC0414

# --- the request is wrong, whatever the state ---------------------------------------------------------------------


class InvalidFieldError(RgsError):
    """A field is missing, malformed or outside its limit."""

    reason = "INVALID_FIELD"


class UnknownFieldError(RgsError):
    """The message carries fields that this version does not know; a changed meaning must not pass in silence."""

    reason = "UNKNOWN_FIELD"


class StakeBelowMinimumError(RgsError):
    """A stake below the table minimum (RULEBOOK C-8, U-10)."""

    reason = "STAKE_BELOW_MINIMUM"


class StakeAboveMaximumError(RgsError):
    """A stake above the table maximum (RULEBOOK C-8, U-10)."""

    reason = "STAKE_ABOVE_MAXIMUM"


class StakeStepError(RgsError):
    """A stake that is no multiple of the step, so that a payout could fall on part of a minor unit (RULEBOOK U-10)."""

    reason = "STAKE_NOT_MULTIPLE_OF_STEP"


class UnknownBetError(RgsError):
    """A bet that the game does not have, or that the player may not place himself."""

    reason = "UNKNOWN_BET"


# --- who is asking -----------------------------------------------------------------------------------------------


class UnauthenticatedError(RgsError):
    """No certificate, or one that the allow-list does not know."""

    reason = "CERTIFICATE_NOT_ALLOWED"


class PermissionDeniedError(RgsError):
    """The party's role does not allow this method."""

    reason = "ROLE_NOT_ALLOWED"


# --- not there (or not yours, which reads the same) --------------------------------------------------------------


class NotFoundError(RgsError):
    """No such thing, or not this party's. `metadata["kind"]` says what was looked for."""

    reason = "NOT_FOUND"


class UnknownRulesetError(RgsError):
    """No ruleset of that id is shipped."""

    reason = "UNKNOWN_RULESET"


# --- the state does not allow it ---------------------------------------------------------------------------------


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
    """The operator's wallet has rolled this transaction back; a debit that arrives after that takes no money."""

    reason = "TRANSACTION_ROLLED_BACK"


class RegulatorRefusedError(RgsError):
    """The regulator's central system refuses; `metadata["rejection"]` is its code."""

    reason = "REGULATOR_REFUSED"


class SessionClosedError(RgsError):
    """The session is closed; nothing further can happen in it."""

    reason = "SESSION_CLOSED"


class RoundOpenError(RgsError):
    """A round is still open; `metadata["round_id"]` names it."""

    reason = "ROUND_OPEN"


class RoundNotOpenError(RgsError):
    """The round has ended; its result stands."""

    reason = "ROUND_NOT_OPEN"


class RoundPausedError(RgsError):
    """A malfunction of the round is looked into (RULEBOOK R-6): no decision is taken; `malfunction_code` says what."""

    reason = "ROUND_PAUSED"


class RoundNotPausedError(RgsError):
    """Only a round with a logged malfunction can be resumed or made void."""

    reason = "ROUND_NOT_PAUSED"


class ClocksDifferError(RgsError):
    """An admin's word for the wall clock, while the database's clock says otherwise: neither is believed."""

    reason = "CLOCKS_DIFFER"


class ReportNotDoneError(RgsError):
    """A report that is not there yet, or never will be; `metadata["state"]` says which."""

    reason = "REPORT_NOT_DONE"


class SecondAdminError(RgsError):
    """A void is proposed by one admin and approved by another (ARCHITECTURE 2.20)."""

    reason = "SECOND_ADMIN_NEEDED"


class LastAdminError(RgsError):
    """No other admin's certificate is allowed and still valid: the last one is not removed."""

    reason = "LAST_ADMIN"


class LossLimitError(RgsError):
    """The session's loss limit does not cover it."""

    reason = "LOSS_LIMIT"


class StakeLimitError(RgsError):
    """The session's stake limit does not cover it."""

    reason = "STAKE_LIMIT"


class DurationLimitError(RgsError):
    """The session's time is up: no new rounds."""

    reason = "DURATION_LIMIT"


class SessionInactiveError(RgsError):
    """The jurisdiction's inactivity has passed: no new rounds and purchases in this session."""

    reason = "SESSION_INACTIVE"


class RetentionError(RgsError):
    """The law asks for the record of this player still, or something of it is under way: nothing is erased."""

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


class AffairPendingError(RgsError):
    """A purchase, an end or a close of this session is still under way; it is continued, and must be done first."""

    reason = "AFFAIR_PENDING"


class TableOnlyError(RgsError):
    """The ruleset is a table game; it cannot be opened as a solo session."""

    reason = "TABLE_ONLY"


class GameNotOfferedError(RgsError):
    """No certificate shows the game's returns, or one of them is below the jurisdiction's floor."""

    reason = "GAME_NOT_OFFERED"


class JurisdictionError(RgsError):
    """The jurisdiction does not allow this (test register, development CA, currency)."""

    reason = "JURISDICTION_REFUSES"


class TooEarlyError(RgsError):
    """The jurisdiction's minimum time between round starts has not passed; `metadata["retry_after_ms"]`."""

    reason = "TOO_EARLY"


class NumberExpectedError(RgsError):
    """The stage or purchase number of the request is not the one expected next."""

    reason = "NUMBER_NOT_EXPECTED"


# --- two of the same, or a race ----------------------------------------------------------------------------------


class IdempotencyConflictError(RgsError):
    """The party has used the request id before, for the same method, with other content."""

    reason = "IDEMPOTENCY_CONFLICT"


class CertificateKnownError(RgsError):
    """The certificate is in the allow-list, or was removed from it: a removed one stays denied."""

    reason = "CERTIFICATE_KNOWN"


class RoundChangedError(RgsError):
    """The round is not at the version that the request names; the fresh view travels with the error."""

    reason = "ROUND_CHANGED"


class SessionChangedError(RgsError):
    """Another request changed the session at the same moment; read it again and decide anew."""

    reason = "SESSION_CHANGED"


# --- not now -----------------------------------------------------------------------------------------------------


class UnavailableError(RgsError):
    """Something needed is down; the same request with the same request id may be sent again."""

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
    """The central system gives no ids: no id, no round."""

    reason = "REGULATOR_UNAVAILABLE"


class WalletUnavailableError(UnavailableError):
    """The operator's wallet did not answer; the affair is kept and continued."""

    reason = "WALLET_UNAVAILABLE"


class ReconciliationBusyError(RgsError):
    """A node runs one reconciliation at a time, and takes one submission of an operator at a time."""

    reason = "RECONCILIATION_BUSY"


class ReconciliationFullError(RgsError):
    """An operator's submissions and reports take what this node keeps for them."""

    reason = "RECONCILIATION_FULL"


class PartyLimitError(RgsError):
    """The party has more under way, a second or open than its share of a process; `field` names the setting."""

    reason = "PARTY_LIMIT"


class StreamStalledError(RgsError):
    """The client of a stream has not read for too long; its requests without an answer may have taken effect."""

    reason = "STREAM_STALLED"


class StreamIdleError(UnavailableError):
    """Nothing was asked on a stream for too long."""

    reason = "STREAM_IDLE"


class DeadlineTooShortError(RgsError):
    """The call came without a deadline or with too little time left to finish it."""

    reason = "DEADLINE_TOO_SHORT"


# --- the data is not what it claims ------------------------------------------------------------------------------


class RulesetError(RgsError):
    """A ruleset or jurisdiction file is refused when loaded: the message names the row and the limit."""

    reason = "RULESET_REFUSED"
