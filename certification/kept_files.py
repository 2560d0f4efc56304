"""The files beside a log that its `artifact` statements name: each must be there and match its hash and length.

Reads at most the length that the statement gives, and at most ARTIFACT_BYTES_MAX of one file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Final

from certification.sources import LogSource
from certification.tree import ARTIFACTS, failure
from rgs.core.errors import VerificationError

ARTIFACT_BYTES_MAX: Final = 1 << 26


def verify_artifacts(source: LogSource, artifacts: Mapping[str, str]) -> Iterator[VerificationError]:
    """What is wrong with the files of these artifacts (`<SHA-256> <length>` -> name), each by its name. SourceError
    where the log cannot be asked.
    """
    for result, name in sorted(artifacts.items(), key=lambda one: (one[1], one[0])):
        digest, _, bytes_ = result.partition(" ")
        length = int(bytes_)
        path = f"artifact/{digest}"
        if length > ARTIFACT_BYTES_MAX:
            wrong = f"{length} bytes, more than {ARTIFACT_BYTES_MAX}"
        elif (data := source.read(path, ARTIFACT_BYTES_MAX)) is None:
            wrong = f"{path} is missing"
        elif len(data) != length:
            wrong = f"{path} has {len(data)} bytes, its statement says {length}"
        elif sha256(data).hexdigest() != digest:
            wrong = f"the content of {path} is another"
        else:
            continue
        yield failure(ARTIFACTS, f"{name}: {wrong}", artifact=name, path=path)
