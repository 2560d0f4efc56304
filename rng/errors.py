"""The errors of the certified unit.

Each carries a `reason`, a stable UPPER_SNAKE code fit for a signed statement, and a detail for people. Neither ever
holds a seed, a state, a transcript or an output: details are made of lengths, limits and names only.
"""


class RngError(Exception):
    """Base of every error of this package that describes a state of the world; `ValueError` is a caller's slip."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


class DrbgError(RngError):
    """The DRBG refuses: a length outside SP 800-90A Table 2, or no working state."""


class ReseedRequiredError(DrbgError):
    """The reseed interval is used up (SP 800-90A 9.3.1 step 7); the state is intact and waits for `reseed`."""


class EntropyError(RngError):
    """The operating system gave no usable entropy, or the source has failed before and stays shut."""


class HealthTestError(EntropyError):
    """A health test saw a dead, stuck or repeating source."""


class SelfTestError(RngError):
    """A known-answer test did not give its known answer; nothing of this unit may be used."""


class TranscriptError(RngError):
    """The bytes are not the transcript of one shuffle: some are missing, or some are left over."""


class GeneratorFailedError(RngError):
    """The generator draws no more: it failed, was closed, or belongs to another process. `reason` says which."""


class VectorFileError(RngError):
    """A file of known answers that cannot be read, or is not exactly in the documented format."""
