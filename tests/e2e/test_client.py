"""The client's patience: what it repeats and with which request id, against a server that is made to fail."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as Detail
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from rgs.devkit import client as client_module
from rgs.devkit.client import (
    CallError,
    Client,
    ClientIdentity,
    OutcomeUnknownError,
    StreamRounds,
    UnaryRounds,
    address_of,
)
from rgs.node.config import load_config
from rgs.node.files import FileRefusedError
from rgs.v1 import play_pb2_grpc
from rgs.v1.play_pb2 import (
    ActRequest,
    ActResponse,
    GetRoundRequest,
    GetRoundResponse,
    PlayRequest,
    PlayResponse,
    StartRoundRequest,
    StartRoundResponse,
)
from tests.support.process.served import PARTY, rgs

OPENING = b"the opening"


def refusal(code: grpc.StatusCode, reason: str = "", retry_ms: int = 0) -> Status:
    """A status as the server makes it; without a reason one as the transport makes it."""
    status = Status(code=code.value[0], message="no")
    for detail in (ErrorInfo(reason=reason, domain="rgs.v1", metadata={"limit": "7"}), RetryInfo()):
        if isinstance(detail, RetryInfo):
            detail.retry_delay.FromMilliseconds(retry_ms)
        packed = Detail()
        packed.Pack(detail)
        status.details.append(packed)
    return status


class FailingPlay(play_pb2_grpc.PlayServiceServicer):
    """Fails as often as `script` has entries: a status, or None for the end of the stream. Keeps what it is sent."""

    def __init__(self) -> None:
        self.script: list[Status | None] = []
        self.seen: list[str] = []
        self.streams = 0
        self.swaps_ids = False

    def StartRound(self, request: StartRoundRequest, context: Any) -> StartRoundResponse:  # noqa: N802 - the contract's
        self.seen.append(request.request_id)
        if self.script and (status := self.script.pop(0)) is not None:
            context.abort_with_status(rpc_status.to_status(status))
        return StartRoundResponse(opening=OPENING)

    def Act(self, request: ActRequest, context: Any) -> ActResponse:  # noqa: N802
        raise AssertionError("this client has no reason to call it")

    def GetRound(self, request: GetRoundRequest, context: Any) -> GetRoundResponse:  # noqa: N802
        raise AssertionError("this client has no reason to call it")

    def Play(self, request_iterator: Iterator[PlayRequest], context: Any) -> Iterator[PlayResponse]:  # noqa: N802
        self.streams += 1
        for request in request_iterator:
            inner = request.start_round if request.HasField("start_round") else request.act
            self.seen.append(inner.request_id)
            if self.script:
                status = self.script.pop(0)
                if status is None:
                    return
                yield PlayResponse(request_id=inner.request_id, error=status)
                continue
            answered = "another" if self.swaps_ids else inner.request_id
            if request.HasField("act"):
                yield PlayResponse(request_id=answered, act=ActResponse(final=b"the final"))
            else:
                yield PlayResponse(request_id=answered, start_round=StartRoundResponse(opening=OPENING))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("client") / "home"
    assert rgs("init", "--home", str(home)).returncode == 0
    return home


@pytest.fixture
def failing(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[FailingPlay, Client]]:
    monkeypatch.setattr(client_module, "PAUSES_S", (0.0, 0.0, 0.0))
    servicer, server = FailingPlay(), grpc.server(ThreadPoolExecutor(2))
    play_pb2_grpc.add_PlayServiceServicer_to_server(servicer, server)
    tls = home / "tls"
    pair = ((tls / "server.key").read_bytes(), (tls / "server.pem").read_bytes())
    credentials = grpc.ssl_server_credentials([pair], (tls / "ca.pem").read_bytes(), require_client_auth=True)
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    with Client(f"127.0.0.1:{port}", ClientIdentity.of_party(load_config(home), PARTY)) as client:
        yield servicer, client
    server.stop(None).wait()


UNANSWERED = [
    refusal(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE", 1),
    refusal(grpc.StatusCode.DEADLINE_EXCEEDED),
    refusal(grpc.StatusCode.ABORTED, "REQUEST_SEEN"),
]
REFUSED = [
    refusal(grpc.StatusCode.FAILED_PRECONDITION, "ROUND_OPEN"),
    refusal(grpc.StatusCode.ABORTED, "ROUND_CHANGED"),
    refusal(grpc.StatusCode.INTERNAL, "INTERNAL"),
    refusal(grpc.StatusCode.CANCELLED),
]


@pytest.mark.parametrize("kind", [UnaryRounds, StreamRounds])
def test_what_is_not_answered_is_repeated_with_its_id(
    failing: tuple[FailingPlay, Client], kind: type[UnaryRounds | StreamRounds]
) -> None:
    servicer, client = failing
    servicer.script = [*UNANSWERED]
    rounds = kind(client)
    request = StartRoundRequest(request_id=client.request_id())
    assert rounds.start_round(request).opening == OPENING
    rounds.close()
    assert servicer.seen == [request.request_id] * 4


@pytest.mark.parametrize("kind", [UnaryRounds, StreamRounds])
def test_patience_ends_and_the_outcome_is_unknown(
    failing: tuple[FailingPlay, Client], kind: type[UnaryRounds | StreamRounds]
) -> None:
    servicer, client = failing
    servicer.script = [UNANSWERED[0]] * 9
    rounds = kind(client)
    with pytest.raises(OutcomeUnknownError, match="no"):
        rounds.start_round(StartRoundRequest(request_id=client.request_id()))
    rounds.close()
    assert len(servicer.seen) == 4  # the first, and one a pause


@pytest.mark.parametrize("kind", [UnaryRounds, StreamRounds])
@pytest.mark.parametrize("status", REFUSED, ids=lambda status: str(status.code))
def test_a_refusal_is_not_repeated(
    failing: tuple[FailingPlay, Client], kind: type[UnaryRounds | StreamRounds], status: Status
) -> None:
    servicer, client = failing
    servicer.script = [status]
    rounds = kind(client)
    with pytest.raises(CallError) as caught:
        rounds.start_round(StartRoundRequest(request_id=client.request_id()))
    rounds.close()
    assert not isinstance(caught.value, OutcomeUnknownError)
    assert caught.value.code.value[0] == status.code
    assert caught.value.metadata == {"limit": "7"}
    assert str(caught.value).endswith("limit=7]")
    assert len(servicer.seen) == 1


def test_a_server_that_asks_for_a_long_pause_is_not_asked_again(failing: tuple[FailingPlay, Client]) -> None:
    servicer, client = failing
    servicer.script = [refusal(grpc.StatusCode.UNAVAILABLE, "RNG_UNAVAILABLE", 10_000)]
    with pytest.raises(OutcomeUnknownError) as caught:
        UnaryRounds(client).start_round(StartRoundRequest(request_id=client.request_id()))
    assert (caught.value.reason, caught.value.pause_s) == ("RNG_UNAVAILABLE", 10.0)
    assert len(servicer.seen) == 1


def test_a_stream_that_ends_is_opened_again(failing: tuple[FailingPlay, Client]) -> None:
    servicer, client = failing
    rounds = StreamRounds(client)
    first, second = (StartRoundRequest(request_id=client.request_id()) for _ in range(2))
    assert rounds.start_round(first).opening == OPENING
    servicer.script = [None]
    assert rounds.start_round(second).opening == OPENING
    act = ActRequest(request_id=client.request_id())
    assert rounds.act(act).final == b"the final"
    rounds.close()
    assert servicer.streams == 2
    assert servicer.seen == [first.request_id, second.request_id, second.request_id, act.request_id]


def test_an_answer_to_another_request_is_refused(failing: tuple[FailingPlay, Client]) -> None:
    servicer, client = failing
    servicer.swaps_ids = True
    rounds = StreamRounds(client)
    with pytest.raises(CallError, match="that of another request"):
        rounds.start_round(StartRoundRequest(request_id=client.request_id()))
    rounds.close()
    assert len(servicer.seen) == 1


def test_request_ids_are_uuids_and_new(failing: tuple[FailingPlay, Client]) -> None:
    _, client = failing
    ids = {client.request_id() for _ in range(100)}
    assert len(ids) == 100
    assert {(uuid.UUID(one).version, uuid.UUID(one).variant, str(uuid.UUID(one)) == one) for one in ids} == {
        (7, uuid.RFC_4122, True)
    }


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("127.0.0.1:5", "127.0.0.1:5"),
        ("0.0.0.0:5", "127.0.0.1:5"),
        ("[::]:5", "[::1]:5"),
        ("rgs.example:5", "rgs.example:5"),
    ],
)
def test_where_a_client_finds_its_own_server(home: Path, listen: str, address: str) -> None:
    assert address_of(load_config(home, {"listen": listen})) == address


def test_no_client_without_its_own_certificate(home: Path) -> None:
    with pytest.raises(FileRefusedError, match="there is no private key"):
        Client("127.0.0.1:5", ClientIdentity.of_party(load_config(home), "stranger"))
    key = home / "tls" / "clients" / "demo-lab.key"
    key.chmod(0o644)
    with pytest.raises(FileRefusedError, match="others may read"):
        Client("127.0.0.1:5", ClientIdentity.of_party(load_config(home), "demo-lab"))
