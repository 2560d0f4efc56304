"""From a byte to an unbiased integer below n, by rejection on single bytes.

The only place in the house where bytes become numbers. Uniformity is provable by exhausting 256 values: each result
has exactly floor(256 / n) accepted bytes. It refuses n outside 1..256 and uses no float and no bare remainder.
"""

from collections.abc import Callable


def below(n: int, next_byte: Callable[[], int]) -> int:
    """Return a uniform integer 0..n-1, 1 <= n <= 256, from independent uniform bytes 0..255.

    Bytes >= 256 - 256 % n are rejected and the next is taken; n = 1 consumes nothing. Raises ValueError for another
    n, and whatever `next_byte` raises. Source: GLI-19 3.2 (unbiased scaling), proved by exhaustion in the tests.
    """
    if not 1 <= n <= 256:
        raise ValueError("n is 1..256")
    if n == 1:
        return 0
    limit = 256 - 256 % n
    byte = next_byte()
    while byte >= limit:
        byte = next_byte()
    return byte % n
