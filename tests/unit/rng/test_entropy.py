"""The operating system's source: fails closed, stays shut, and is the only door."""

import collections
import os
import threading
from collections.abc import Callable

import pytest

from rng.entropy import BLOCK_BYTES, MAX_READ_BYTES, STARTUP_BYTES, EntropySource
from rng.errors import EntropyError, HealthTestError
from tests.unit.rng.conftest import ScriptedSource


def test_the_start_up_test_takes_1024_bytes_and_gives_none_of_them_out(source: ScriptedSource) -> None:
    entropy = EntropySource()
    started = b"".join(source.served)
    assert len(started) >= 1024
    assert len(started) == STARTUP_BYTES
    first = entropy.read(64)
    assert first not in started
    assert first == source.served[-1]


def test_the_kernel_is_never_waited_for(source: ScriptedSource) -> None:
    EntropySource()
    assert source.flags == {os.GRND_NONBLOCK}


@pytest.mark.parametrize("n_bytes", [1, 16, 63, 64, 65, 128, 1000, MAX_READ_BYTES])
def test_a_read_is_the_beginning_of_whole_fresh_blocks(n_bytes: int, source: ScriptedSource) -> None:
    entropy = EntropySource()
    before = len(source.served)
    octets = entropy.read(n_bytes)
    fresh = source.served[before:]
    assert len(fresh) == -(-n_bytes // BLOCK_BYTES)
    assert octets == b"".join(fresh)[:n_bytes]


@pytest.mark.parametrize("n_bytes", [-1, 0, MAX_READ_BYTES + 1])
def test_a_wrong_length_is_refused_and_shuts_nothing(n_bytes: int) -> None:
    entropy = EntropySource()
    with pytest.raises(EntropyError) as caught:
        entropy.read(n_bytes)
    assert (caught.value.reason, MAX_READ_BYTES) == ("READ_LENGTH", 65_536)
    assert entropy.healthy
    assert len(entropy.read(3)) == 3


def _raises(error: BaseException) -> Callable[[int], bytes]:
    def block(_: int) -> bytes:
        raise error

    return block


FAILURES: list[tuple[str, Callable[[int], bytes]]] = [
    ("ENTROPY_NOT_READY", _raises(BlockingIOError("EAGAIN"))),
    ("ENTROPY_UNAVAILABLE", _raises(OSError("ENOSYS"))),
    ("ENTROPY_SHORT", lambda _: bytes(range(63))),
    ("REPETITION_COUNT", lambda _: b"\x00" * 64),  # dead
    ("ADAPTIVE_PROPORTION", lambda i: bytes([i % 5, 77]) * 32),  # two values
    ("SAME_BLOCK", lambda _: bytes(range(64))),  # repeating
]


@pytest.mark.parametrize(("reason", "block"), FAILURES)
def test_no_source_is_made_on_a_failing_system(
    reason: str, block: Callable[[int], bytes], source: ScriptedSource
) -> None:
    source.block = block
    with pytest.raises(EntropyError) as caught:
        EntropySource()
    assert caught.value.reason == reason


@pytest.mark.parametrize(("reason", "block"), FAILURES)
def test_a_later_failure_shuts_the_source_for_good(
    reason: str, block: Callable[[int], bytes], source: ScriptedSource
) -> None:
    entropy, good = EntropySource(), source.block
    source.block = block
    with pytest.raises(EntropyError) as caught:
        entropy.read(256)
    assert caught.value.reason == reason
    assert isinstance(caught.value, HealthTestError) == (not reason.startswith("ENTROPY"))
    assert not entropy.healthy
    source.block = good
    requested = len(source.served)
    with pytest.raises(EntropyError) as again:
        entropy.read(1)
    assert again.value.reason == reason
    assert len(source.served) == requested  # a shut source does not even ask


def test_a_failing_second_block_gives_nothing_out_of_the_first(source: ScriptedSource) -> None:
    entropy, good, start = EntropySource(), source.block, len(source.served)
    source.block = lambda i: good(i) if i == start else b"\x00" * 64
    with pytest.raises(HealthTestError):
        entropy.read(65)


def test_health_state_runs_on_across_reads(source: ScriptedSource) -> None:
    entropy, start = EntropySource(), len(source.served)
    source.block = lambda i: bytes([77, i % 256]) * 9 + bytes(range(100, 146))  # 9 + of one value a block
    with pytest.raises(HealthTestError, match="ADAPTIVE_PROPORTION"):
        collections.deque((entropy.read(64) for _ in range(16)), maxlen=0)
    assert len(source.served) > start + 1  # no single block was refused by itself


def test_a_system_without_getrandom_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "getrandom")
    with pytest.raises(EntropyError, match="ENTROPY_UNAVAILABLE"):
        EntropySource()


def test_an_interrupted_read_shuts_the_source(source: ScriptedSource) -> None:
    entropy = EntropySource()
    source.block = _raises(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        entropy.read(1)
    with pytest.raises(EntropyError) as caught:
        entropy.read(1)
    assert caught.value.reason == "INTERRUPTED"


def test_another_process_is_refused_before_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    entropy = EntropySource()
    with monkeypatch.context() as child, entropy._lock:
        child.setattr(os, "getpid", lambda: 1)
        healthy_in_child = entropy.healthy
        with pytest.raises(EntropyError) as caught:
            entropy.read(1)
    assert caught.value.reason == "FORKED"
    assert not healthy_in_child
    assert len(entropy.read(1)) == 1


def test_threads_share_a_source_and_never_a_byte_string() -> None:
    entropy, got = EntropySource(), list[bytes]()

    def work() -> None:
        got.extend(entropy.read(32) for _ in range(200))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(got)) == 800
