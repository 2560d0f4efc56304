"""Files that an auditor names are read whole, up to a limit (`certification.replay.read_file`)."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from certification.replay import FileError, read_file


def test_the_limit_costs_no_memory(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"all of it")
    assert read_file(tmp_path / "state", 1 << 50) == b"all of it"


@pytest.mark.parametrize("length", [0, 9, 10, 11])
def test_a_file_and_a_pipe_have_the_same_limit(length: int, tmp_path: Path) -> None:
    content = b"x" * length
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    file.write_bytes(content)
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    for path in (file, pipe):
        if length <= 10:
            assert read_file(path, 10) == content
        else:
            with pytest.raises(FileError, match="longer than 10 bytes"):
                read_file(path, 10)
    writer.join()
