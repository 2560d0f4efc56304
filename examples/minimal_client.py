"""The smallest whole client: one session from open to close, with nothing but gRPC and the generated code.

    python examples/minimal_client.py HOST:PORT CA.pem CLIENT.pem CLIENT.key [ROUNDS]

Plays Casino Hold'em: calls with a pair or better, or with an ace or king of its own; else folds. Keeps every signed
statement, as an operator should. It repeats nothing and verifies nothing; docs/integration.md says what a real client
must do as well.
"""

from __future__ import annotations

import sys
import time
import uuid
from pathlib import Path

import grpc

from rgs.v1 import common_pb2, play_pb2, play_pb2_grpc, session_pb2, session_pb2_grpc

TIMEOUT_S = 10.0


def connect(address: str, ca: str, certificate: str, key: str) -> grpc.Channel:
    """A channel with mutual TLS: server and client show their certificates."""
    credentials = grpc.ssl_channel_credentials(
        root_certificates=Path(ca).read_bytes(),
        private_key=Path(key).read_bytes(),
        certificate_chain=Path(certificate).read_bytes(),
    )
    return grpc.secure_channel(address, credentials)


def request_id() -> str:
    """A new UUID that begins with the time (version 7); a repeat of the same request would carry the same one."""
    time_ms = f"{time.time_ns() // 1_000_000:012x}"
    return f"{time_ms[:8]}-{time_ms[8:]}-7{str(uuid.uuid4())[15:]}"


def decide(round_: common_pb2.RoundView) -> common_pb2.Action.ValueType:
    """Call or fold, from the cards in the view."""
    has_high_card = any(card[0] in "AK" for card in round_.hole_cards)
    if has_high_card or round_.player_hand.category != "high_card":
        return common_pb2.ACTION_CALL
    return common_pb2.ACTION_FOLD


def play_session(channel: grpc.Channel, rounds: int) -> list[bytes]:
    """Open, buy, play, end, close. Returns the signed statements in their order."""
    sessions, play = session_pb2_grpc.SessionServiceStub(channel), play_pb2_grpc.PlayServiceStub(channel)

    opened = sessions.OpenSession(
        session_pb2.OpenSessionRequest(
            request_id=request_id(),
            game="casino-holdem",
            player="minimal-player",
            currency="EUR",
            operator_reference=f"minimal-{uuid.uuid4()}",  # your own id of the session, each once
        ),
        timeout=TIMEOUT_S,
    )
    session_id = opened.session.session_id
    bought = sessions.BuyParticipation(
        session_pb2.BuyParticipationRequest(
            request_id=request_id(),
            session_id=session_id,
            purchase_no=opened.session.next_purchase_no,
            amount_minor=50_00,
        ),
        timeout=TIMEOUT_S,
    )
    statements, session = [opened.statement, bought.statement], bought.session
    print(f"session {session.regulator_session_id} at the regulator, balance {euro(session.balance_minor)}")

    for _ in range(rounds):
        started = play.StartRound(
            play_pb2.StartRoundRequest(
                request_id=request_id(),
                session_id=session_id,
                round_no=session.next_round_no,
                bets=[common_pb2.Bet(bet="ante", amount_minor=1_00)],
            ),
            timeout=TIMEOUT_S,
        )
        round_ = started.round
        ended = play.Act(
            play_pb2.ActRequest(
                request_id=request_id(),
                session_id=session_id,
                round_id=round_.round_id,
                round_version=round_.round_version,
                action=decide(round_),
            ),
            timeout=TIMEOUT_S,
        )
        statements += [started.opening, ended.final]
        session, round_ = ended.session, ended.round
        outcome = common_pb2.Outcome.Name(round_.outcome).removeprefix("OUTCOME_").lower()
        cards = f"{' '.join(round_.hole_cards)} on {' '.join(round_.board)} against {' '.join(round_.dealer_cards)}"
        print(f"round {round_.game_code}: {cards}, {outcome}, {euro(round_.returned_minor - round_.staked_minor)}")

    end = session_pb2.EndParticipationRequest(request_id=request_id(), session_id=session_id)
    ended_participation = sessions.EndParticipation(end, timeout=TIMEOUT_S)
    close = session_pb2.CloseSessionRequest(request_id=request_id(), session_id=session_id)
    closed = sessions.CloseSession(close, timeout=TIMEOUT_S)
    print(f"closed, {euro(closed.session.paid_out_minor)} paid out")
    return [*statements, ended_participation.statement, closed.statement]


def euro(amount_minor: int) -> str:
    """The amount as text: the amounts of the contract are cents here."""
    return f"{'-' * (amount_minor < 0)}{abs(amount_minor) // 100}.{abs(amount_minor) % 100:02d} EUR"


def main(arguments: list[str]) -> int:
    """Run the example; the exit status."""
    if len(arguments) not in (4, 5):
        print(__doc__, file=sys.stderr)
        return 2
    with connect(*arguments[:4]) as channel:
        statements = play_session(channel, int(arguments[4]) if len(arguments) == 5 else 5)
    print(f"{len(statements)} signed statements kept")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
