"""The platform, killed by SIGKILL right after its write number N is on the disk, before anybody hears of it.

python killing_platform.py N OPTIONS: N counts the transactions of both files from 1.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from operator_platform import __main__ as command  # type: ignore[import-not-found]
from operator_platform.store.database import Database  # type: ignore[import-not-found]


def main() -> int:
    """Run the platform; the exit status, if it lives to have one."""
    fatal = int(sys.argv.pop(1))
    numbers = itertools.count(1)
    transact: Callable[..., Any] = Database._transact

    def killed(database: Any, work: Any) -> Any:
        found = transact(database, work)
        if next(numbers) == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    Database._transact = killed
    return int(command.main())


if __name__ == "__main__":
    sys.exit(main())
