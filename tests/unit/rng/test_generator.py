"""The generator: reseeds before every draw, counts without gaps, fails closed, and never shares a state."""

import copy
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable

import pytest

from rng import generator as generator_module
from rng import selftest
from rng.drbg import HashDrbg
from rng.entropy import EntropySource
from rng.errors import EntropyError, GeneratorFailedError, RngError, SelfTestError
from rng.generator import DRAW_REQUEST_BYTES, DRAW_REQUESTS_MAX, Draw, Generator, LifeEvent
from rng.shuffle import shuffle, transcript_to_deck
from tests.unit.rng.conftest import ScriptedSource
from tests.unit.rng.reference import ReferenceHashDrbg


def test_draws_are_exactly_what_the_documents_say(source: ScriptedSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator_module, "_serials", iter([7]))
    generator = Generator("node-1/boot-2/worker-3")
    entropy_input, nonce = source.served[-2:]
    drbg = ReferenceHashDrbg(
        "sha512",
        entropy_input,
        nonce[:16] + os.getpid().to_bytes(8, "big") + (7).to_bytes(8, "big"),
        b"rgs/rng/v1|node-1/boot-2/worker-3",
    )
    for draw_no in range(1, 51):
        served = len(source.served)
        draw = generator.draw()
        assert len(source.served) == served + 1  # one fresh block a draw
        drbg.reseed(source.served[-1], b"")
        tape = drbg.generate(64, draw_no.to_bytes(8, "big"))
        assert tape.startswith(draw.transcript)
        assert sorted(transcript_to_deck(draw.transcript)) == list(range(52))
        assert (draw.instance, draw.draw_no, draw.reseed_counter) == ("node-1/boot-2/worker-3", draw_no, draw_no)
        assert draw.rejected == len(draw.transcript) - 51
        assert draw.rejected >= 0


def test_who_knows_the_state_but_not_the_fresh_entropy_does_not_know_the_next_draw(source: ScriptedSource) -> None:
    # State compromise extension (GLI-19 3.3.2(c)): two generators in one state part with their entropy.
    one, other = Generator("same"), Generator("same")
    other._drbg._v[:], other._drbg._c[:] = one._drbg._v, one._drbg._c
    assert one.draw().transcript != other.draw().transcript


def test_two_instances_never_give_the_same_stream_even_from_equal_entropy(source: ScriptedSource) -> None:
    start = source.block
    decks = []
    for _ in range(2):
        source.served.clear()
        source.block = start
        decks.append([Generator("same").draw().transcript for _ in range(3)])
    assert not set(decks[0]) & set(decks[1])


def test_a_tape_that_is_too_short_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[tuple[int, bytes]] = []

    def scripted(self: HashDrbg, n_bytes: int, additional_input: bytes = b"") -> bytes:
        requests.append((n_bytes, additional_input))
        return b"\xff" * 60 + bytes(4) if len(requests) < 3 else bytes(range(64))

    generator = Generator("node")
    monkeypatch.setattr(HashDrbg, "generate", scripted)
    draw = generator.draw()
    assert requests == [(DRAW_REQUEST_BYTES, (1).to_bytes(8, "big"))] * 3
    tape = (b"\xff" * 60 + bytes(4)) * 2 + bytes(range(64))
    assert tape.startswith(draw.transcript)
    assert transcript_to_deck(draw.transcript) == tuple(shuffle(iter(tape).__next__))
    assert draw.rejected == len(draw.transcript) - 51
    assert (draw.draw_no, draw.reseed_counter) == (1, 1)


def test_an_endless_draw_ends_at_the_bound_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    right, requests = HashDrbg.generate, list[int]()

    def stuck(self: HashDrbg, n_bytes: int, additional_input: bytes = b"") -> bytes:
        right(self, n_bytes, additional_input)
        requests.append(n_bytes)
        return b"\xff" * n_bytes

    generator = Generator("node")
    monkeypatch.setattr(HashDrbg, "generate", stuck)
    with pytest.raises(GeneratorFailedError, match="RESEED_REQUIRED"):
        generator.draw()
    assert len(requests) == DRAW_REQUESTS_MAX == 16


def test_threads_share_a_generator_without_gap_or_repetition() -> None:
    generator, draws = Generator("node"), list[Draw]()

    def work() -> None:
        draws.extend(generator.draw() for _ in range(100))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(draw.draw_no for draw in draws) == list(range(1, 401))
    assert all(draw.reseed_counter == draw.draw_no for draw in draws)
    assert len({draw.transcript for draw in draws}) == 400


def is_healthy(generator: Generator) -> bool:
    return generator.healthy


def test_the_life_of_an_instance_is_told_by_unsigned_events() -> None:
    generator = Generator("node")
    assert is_healthy(generator)
    assert generator.events() == (LifeEvent("instantiated", "node", 0, "POWER_UP"),)
    generator.draw()
    generator.draw()
    end = generator.close()
    assert end == LifeEvent("uninstantiated", "node", 2, "CLOSED")
    assert generator.close() is end
    assert generator.events()[1:] == (end,)
    assert not is_healthy(generator)
    with pytest.raises(GeneratorFailedError, match="CLOSED"):
        generator.draw()
    assert not any(generator._drbg._v)


def _stuck_source(generator: Generator, source: ScriptedSource, patch: pytest.MonkeyPatch) -> str:
    source.block = lambda _: b"\x00" * 64
    return "REPETITION_COUNT"


def _no_source(generator: Generator, source: ScriptedSource, patch: pytest.MonkeyPatch) -> str:
    def fail(_: int) -> bytes:
        raise OSError

    source.block = fail
    return "ENTROPY_UNAVAILABLE"


def _repeating_source(generator: Generator, source: ScriptedSource, patch: pytest.MonkeyPatch) -> str:
    last = source.served[-1]
    source.block = lambda _: last
    return "SAME_BLOCK"


def _source_shut_by_a_salt(generator: Generator, source: ScriptedSource, patch: pytest.MonkeyPatch) -> str:
    good, source.block = source.block, lambda _: b"\x01" * 64
    with pytest.raises(EntropyError):
        generator.entropy.read(32)
    source.block = good
    assert not generator.healthy
    return "REPETITION_COUNT"


def _no_state(generator: Generator, source: ScriptedSource, patch: pytest.MonkeyPatch) -> str:
    generator._drbg.uninstantiate()
    return "NOT_INSTANTIATED"


def _unforeseen(generator: Generator, source: ScriptedSource, patch: pytest.MonkeyPatch) -> str:
    def fail(next_byte: Callable[[], int]) -> list[int]:
        raise MemoryError

    patch.setattr(generator_module, "shuffle", fail)
    return "INTERRUPTED"


@pytest.mark.parametrize(
    "defect", [_stuck_source, _no_source, _repeating_source, _source_shut_by_a_salt, _no_state, _unforeseen]
)
def test_every_failure_is_final(
    defect: Callable[[Generator, ScriptedSource, pytest.MonkeyPatch], str],
    source: ScriptedSource,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator, good = Generator("node"), source.block
    generator.draw()
    with monkeypatch.context() as patch:
        reason = defect(generator, source, patch)
        with pytest.raises(GeneratorFailedError) as caught:
            generator.draw()
    assert caught.value.reason == reason
    assert not generator.healthy
    assert not any(generator._drbg._v)
    source.block = good
    for refused in (generator.draw, generator.selftest):
        with pytest.raises(GeneratorFailedError) as again:
            refused()
        assert again.value.reason == reason
    failed = LifeEvent("failed", "node", 1, reason)
    assert generator.events()[1:] == (failed,)
    assert generator.close() == failed
    assert generator.events()[1:] == (failed,)


def test_an_interrupted_draw_is_a_failure_and_the_interrupt_goes_on(source: ScriptedSource) -> None:
    def interrupt(_: int) -> bytes:
        raise KeyboardInterrupt

    generator = Generator("node")
    source.block = interrupt
    with pytest.raises(KeyboardInterrupt):
        generator.draw()
    assert generator.events()[-1] == LifeEvent("failed", "node", 0, "INTERRUPTED")
    with pytest.raises(GeneratorFailedError):
        generator.draw()


def test_the_self_test_runs_before_the_entropy_is_touched(
    source: ScriptedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selftest, "_DECK", bytes(52))
    with pytest.raises(SelfTestError):
        Generator("node")
    assert source.served == []


def test_the_self_test_on_demand_passes_or_ends_the_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = Generator("node")
    assert generator.selftest() == selftest.run()
    generator.draw()
    monkeypatch.setattr(selftest, "_DECK", bytes(52))
    with pytest.raises(GeneratorFailedError, match="SHUFFLE_KNOWN_ANSWER"):
        generator.selftest()
    with pytest.raises(GeneratorFailedError, match="SHUFFLE_KNOWN_ANSWER"):
        generator.draw()


def test_no_generator_is_made_on_a_failing_source(source: ScriptedSource) -> None:
    source.block = lambda _: b"\x00" * 64
    with pytest.raises(EntropyError):
        Generator("node")


def test_a_source_handed_over_is_used_and_a_shut_one_refused(source: ScriptedSource) -> None:
    entropy = EntropySource()
    generator = Generator("node", entropy=entropy)
    assert generator.entropy is entropy
    source.block = lambda _: b"\x00" * 64
    with pytest.raises(EntropyError):
        entropy.read(1)
    with pytest.raises(EntropyError):
        Generator("other", entropy=entropy)


@pytest.mark.parametrize("name", ["", "a b", "n\n", "ñ", "x" * 129])
def test_a_name_that_is_no_plain_code_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="instance name"):
        Generator(name)


def test_a_generator_cannot_be_copied_or_pickled() -> None:
    generator = Generator("node")
    for doubling in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="never copied"):
            doubling(generator)


def test_an_inherited_generator_is_zeroized_and_refuses_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = Generator("node")
    generator_module._disown()  # what os.regulator_at_fork calls in a child
    assert not any(generator._drbg._v)
    assert not generator.healthy
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: 1)  # the child may be the first process of a container
        assert not is_healthy(generator)
        with pytest.raises(GeneratorFailedError):
            generator.events()
    for refused in (generator.draw, generator.selftest, generator.close, generator.events):
        with pytest.raises(GeneratorFailedError) as caught:
            refused()
        assert caught.value.reason == "FORKED"


def test_the_process_id_alone_refuses_too_and_before_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = Generator("node")
    with monkeypatch.context() as child, generator._lock:
        child.setattr(os, "getpid", lambda: 1)
        assert not generator.healthy
        for refused in (generator.draw, generator.close, generator.events):
            with pytest.raises(GeneratorFailedError, match="FORKED"):
                refused()
    assert generator.draw().draw_no == 1


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # other tests may have left threads
def test_a_real_fork_zeroizes_the_child_alone() -> None:
    generator = Generator("node")
    pid = os.fork()
    if pid == 0:
        os._exit(0 if generator._pid == 0 and not any(generator._drbg._v) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert any(generator._drbg._v)
    assert generator.draw().draw_no == 1


FORK = """
    import os, sys, threading
    from rng.errors import EntropyError, GeneratorFailedError
    from rng.generator import Generator

    def refused(step, error):
        try:
            step()
        except error as caught:
            return caught.reason == "FORKED"
        return False

    parent = Generator("parent")
    parent.draw()
    inherited = bytes(parent._drbg._v)
    held, done = threading.Event(), threading.Event()
    def hold():
        with parent._lock, parent.entropy._lock:
            held.set()
            done.wait()
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    pid = os.fork()  # while another thread holds both locks
    if pid == 0:
        fresh = Generator("child")
        good = (
            refused(parent.draw, GeneratorFailedError)
            and refused(parent.close, GeneratorFailedError)
            and refused(lambda: parent.entropy.read(1), EntropyError)
            and not any(parent._drbg._v)
            and not parent.healthy
            and fresh.draw().draw_no == 1
        )
        os._exit(0 if good else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    done.set()
    holder.join()
    print(status, any(inherited), parent.draw().draw_no, parent.healthy)
"""


def test_a_forked_child_shares_nothing_and_the_parent_goes_on() -> None:
    script = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(FORK)]
    child = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
    assert (child.stdout, child.stderr) == ("0 True 2 True\n", "")


def test_nothing_secret_stands_in_a_repr_an_error_or_a_traceback(source: ScriptedSource) -> None:
    generator = Generator("node")
    draws = [generator.draw() for _ in range(5)]
    secrets = [
        *source.served,
        *(draw.transcript for draw in draws),
        bytes(generator._drbg._v),
        bytes(generator._drbg._c),
    ]
    source.block = lambda _: b"\x07" * 64
    with pytest.raises(GeneratorFailedError) as caught:
        generator.draw()
    secrets.append(source.served[-1])
    failure = caught.value
    assert failure.__context__ is None
    assert failure.__cause__ is None
    traceback = failure.__traceback__
    result = [repr(draws), str(draws), repr(generator), repr(generator.events()), repr(failure), str(failure)]
    result += [repr(generator.entropy), repr(generator._drbg)]
    while traceback:
        if (
            traceback.tb_frame.f_code.co_filename.endswith("generator.py")
            and "test" not in traceback.tb_frame.f_code.co_name
        ):
            values = traceback.tb_frame.f_locals.values()
            assert not [value for value in values if isinstance(value, bytes | bytearray)]
            result += [repr(value) for value in values]
        traceback = traceback.tb_next
    text = "\n".join(result)
    for secret in secrets:
        assert secret.hex() not in text
        assert repr(secret)[2:-1] not in text
    assert "transcript" not in repr(draws[0])


def test_a_draw_and_an_event_cannot_be_altered() -> None:
    generator = Generator("node")
    for frozen in (generator.draw(), generator.events()[0]):
        with pytest.raises(AttributeError):
            frozen.instance = "other"  # type: ignore[misc]


def test_every_failure_is_an_error_of_the_unit() -> None:
    assert issubclass(GeneratorFailedError, RngError)
    assert repr(Generator("node")) == "<Generator node healthy>"
