"""Power-up and on-demand self-test: known answers before the first output (SP 800-90A 11.3).

Run by every `Generator` before it is instantiated, and by `rng selftest`. It refuses to repair or to retry: one
wrong answer, or any error on the way to it, is a SelfTestError, and nothing may be drawn.
"""

from collections.abc import Callable
from typing import Final

from rng import health
from rng.drbg import MAX_INPUT_BYTES, MAX_REQUEST_BYTES, HashDrbg
from rng.errors import DrbgError, RngError, SelfTestError, TranscriptError
from rng.scaling import below
from rng.shuffle import transcript_to_deck

# NIST CAVS drbgtestvectors, Hash_DRBG SHA-512, no reseed, personalization and additional input, COUNT = 0.
_NO_RESEED_ENTROPY: Final = bytes.fromhex("31e8d6fbdc9026b0708405c20b558fcc0a107f3fdc836fe056f020df30d9dc57")
_NO_RESEED_NONCE: Final = bytes.fromhex("2b8bbab9b486abb659c4ae8ff5978e22")
_NO_RESEED_PERSONALIZATION: Final = bytes.fromhex("949eb753762869aa5ea0ce725523595f9bc9b219735113e71feab228d0872c38")
_NO_RESEED_ADDITIONAL: Final = (
    bytes.fromhex("88f1180d4ef564315280a9692f107ed9c0639d79bb7040dfc3b7d58bf24ef8f5"),
    bytes.fromhex("f4fc8a26e0ad181838f1399fe5b8a4b86670e92ab92b2c4daf3913470724d3f2"),
)
_NO_RESEED_RETURNED: Final = bytes.fromhex(
    "10509641332a4d72a3c5936512c37cb9ab9874693902ee4c76e963675627ef86aa2e7d7029a152b800072fc53eeb6b41"
    "d12f481cde99b467dac3486836f6e146e9a79d3fb90d9b26f213ddbfac590ca083ed83fde4924395d25b645b96a6983e"
    "65fd662cae66112ebfa990f09b86b01270b7f0ef35f183eb01ffcbd7d5ec6adc4839cf3814dac858e013c6d79528ef27"
    "3dd83724ccdc82b73dc63698fcf8ef0924f27b6a49d6d38f0ce261aa5a0a88779e47a413c29e1d7d20e4ab914bbabd5e"
    "6e0241cf53263a8efa321b4a632eb062b255c0ce5a0833114161dd073dd037967a1f03daf2dd7e927b801b40e62f26c0"
    "872ea100132807650232126aa8f29d70"
)
# Ours, checked against the second implementation in the tests: the same state after six more requests of 65 bytes.
# NIST's cases end with the second request, so none of them sees whether reseed_counter is counted up.
_NO_RESEED_EIGHTH: Final = bytes.fromhex(
    "73fbce33ec58182b1e7a21a38cd75f925d8b23fb1026ae348a4b9f0807125eb4648c8a59072eb06f33663692f42c5d6262ee0e443f34d45bd"
    "0fd207207ef17dd0f"
)

# The same source, prediction resistance, personalization and additional input, COUNT = 0.
_PR_ENTROPY: Final = bytes.fromhex("0cfbae94684321e071e66da09e0410128b7a14ff1692014c98fac7f384e8362f")
_PR_NONCE: Final = bytes.fromhex("3a217aec700c191b05e4a11803d5f651")
_PR_PERSONALIZATION: Final = bytes.fromhex("e638d92f217337982258337ae63c3b07b30fc5668e8c123ee0e530fc0187f251")
_PR_ENTROPY_ADDITIONAL: Final = (
    (
        bytes.fromhex("fa65a1561e9699272c147531b29015053ea0e504c1978cc791fd75eaff51c005"),
        bytes.fromhex("30580498cac41c4a514dd913131dd0ef932dfc246710ffb09b33c952fe5e7e69"),
    ),
    (
        bytes.fromhex("7cb7d7de34f568cd8e5808226db8f414f1da556cf00796dc12ecdd8ad049b1c3"),
        bytes.fromhex("ce49a8abe2d1b66582eb54c66022fc856324cfd8c9504077b063f3d58e832fa3"),
    ),
)
_PR_RETURNED: Final = bytes.fromhex(
    "174df659adf93390e0543d04a55d1c23ef5faf8b1a49d36b6010a0ebdd2f77b35b5a8cf942236619a4304b5c0eaad098"
    "ca977a219f2c327f49b5ee4d2a29f48ec91623ce288930b8fe9092ff8ce4aee8e90f6ae9cbf8514d1636f8bda841b49a"
    "a3043605e49581c42f2e54a3b9f1dbe51e78996314df8e3cb43687721d1c660b37f118331dcf8b0acec110489741df45"
    "f2cd5c2aa2a989cd3635fb52ec156b855307e30e34092eff182886470ee9ce0df25c54ddcfe1ca1ae713a2063dc16274"
    "fb36dd957a3a3fcc80d2a0e908e0e43cd0d55e4241afc3ebf6f36248528f0dcfa780aa417f3dabdb7be6622c0c8c8df5"
    "973392c913c777454c393587e050afdf"
)

# Ours, checked in the tests: two bytes rejected at 52 (ff, d0), then the first 51 bytes of the NIST answer above.
_TRANSCRIPT: Final = b"\xff\xd0" + _NO_RESEED_RETURNED[:51]
_DECK: Final = bytes.fromhex(
    "2c0f0d0117050423321607241e220b092b1a1425082830212f291120271c022e060e0c1b260a31121315192d181f2a0333001d10"
)


def run() -> tuple[str, ...]:
    """Run every self-test in turn; the names of those passed. Raises SelfTestError at the first that does not."""
    for name, test in _TESTS:
        try:
            test()
        except SelfTestError:
            raise
        except Exception as error:
            cause = error.reason if isinstance(error, RngError) else type(error).__name__
            raise SelfTestError("SELF_TEST", f"{name} met {cause}") from error
    return tuple(name for name, _ in _TESTS)


def _generate_known_answer() -> None:
    """Instantiate and generate, SP 800-90A 11.3.2 and 11.3.3."""
    drbg = HashDrbg(
        entropy_input=_NO_RESEED_ENTROPY, nonce=_NO_RESEED_NONCE, personalization=_NO_RESEED_PERSONALIZATION
    )
    first, second = _NO_RESEED_ADDITIONAL
    drbg.generate(len(_NO_RESEED_RETURNED), first)
    _require(drbg.generate(len(_NO_RESEED_RETURNED), second) == _NO_RESEED_RETURNED, "GENERATE_KNOWN_ANSWER")
    for _ in range(5):
        drbg.generate(len(_NO_RESEED_EIGHTH))
    _require(drbg.generate(len(_NO_RESEED_EIGHTH)) == _NO_RESEED_EIGHTH, "COUNTER_KNOWN_ANSWER")


def _reseed_known_answer() -> None:
    """Reseed and prediction resistance, SP 800-90A 11.3.4."""
    drbg = HashDrbg(entropy_input=_PR_ENTROPY, nonce=_PR_NONCE, personalization=_PR_PERSONALIZATION)
    returned = [
        drbg.generate(len(_PR_RETURNED), additional_input, entropy_input=entropy_input)
        for entropy_input, additional_input in _PR_ENTROPY_ADDITIONAL
    ]
    _require(returned[-1] == _PR_RETURNED, "RESEED_KNOWN_ANSWER")


def _drbg_refusals() -> None:
    """Error handling and uninstantiate, SP 800-90A 11.3.2 to 11.3.5."""
    good, long = bytes(32), bytes(MAX_INPUT_BYTES + 1)
    drbg = HashDrbg(entropy_input=good, nonce=good, reseed_interval=1)
    _require_refusal("INPUT_LENGTH", lambda: HashDrbg(entropy_input=good[:31], nonce=good))
    _require_refusal("INPUT_LENGTH", lambda: HashDrbg(entropy_input=good, nonce=good[:15]))
    _require_refusal("INPUT_LENGTH", lambda: HashDrbg(entropy_input=good, nonce=good, personalization=long))
    _require_refusal("INPUT_LENGTH", lambda: drbg.reseed(good[:31]))
    _require_refusal("INPUT_LENGTH", lambda: drbg.generate(1, long))
    _require_refusal("REQUEST_LENGTH", lambda: drbg.generate(MAX_REQUEST_BYTES + 1))
    drbg.generate(1)
    _require_refusal("RESEED_REQUIRED", lambda: drbg.generate(1))
    drbg.uninstantiate()
    _require_refusal("NOT_INSTANTIATED", lambda: drbg.generate(1))
    _require_refusal("NOT_INSTANTIATED", lambda: drbg.reseed(good))


def _scaling_known_answer() -> None:
    """Check the last byte accepted and the first rejected, for 52 and 43, and that n = 1 takes no byte."""
    for n, limit in ((52, 208), (43, 215)):
        source = iter((limit - 1, 255, limit, 3))
        drawn = (below(n, source.__next__), below(n, source.__next__))
        _require(drawn == (n - 1, 3), "SCALING_KNOWN_ANSWER")
    _require(below(1, iter(()).__next__) == 0, "SCALING_KNOWN_ANSWER")


def _shuffle_known_answer() -> None:
    _require(transcript_to_deck(_TRANSCRIPT) == tuple(_DECK), "SHUFFLE_KNOWN_ANSWER")
    for transcript in (_TRANSCRIPT[:-1], _TRANSCRIPT + b"\x00"):
        try:
            transcript_to_deck(transcript)
        except TranscriptError:
            continue
        raise SelfTestError("TRANSCRIPT_ACCEPTED", "a transcript of the wrong length gave a deck")


_TESTS: Final[tuple[tuple[str, Callable[[], None]], ...]] = (
    ("hash_drbg instantiate and generate", _generate_known_answer),
    ("hash_drbg reseed and prediction resistance", _reseed_known_answer),
    ("hash_drbg refusals and uninstantiate", _drbg_refusals),
    ("health tests on failing sources", health.selftest),
    ("scaling", _scaling_known_answer),
    ("shuffle and transcript", _shuffle_known_answer),
)


def _require(passed: bool, reason: str) -> None:
    if not passed:
        raise SelfTestError(reason, "the answer is not the known one")


def _require_refusal(reason: str, step: Callable[[], object]) -> None:
    try:
        step()
    except DrbgError as error:
        _require(error.reason == reason, f"{reason}_NOT_REFUSED")
        return
    raise SelfTestError(f"{reason}_NOT_REFUSED", "the step was carried out")
