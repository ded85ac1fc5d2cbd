"""`primes.count`: how many primes there are up to n. Pure CPU work of a size that the message chooses."""

from math import isqrt

from pydantic import BaseModel, ConfigDict, Field

from consumer import job

LARGEST = 50_000_000
"""One byte a number: what a child can hold beside its other memory."""


class Range(BaseModel):
    model_config = ConfigDict(extra="forbid")

    n: int = Field(ge=0, le=LARGEST)


@job("primes.count", timeout=120)
def count(payload: Range) -> dict[str, int]:
    return {"n": payload.n, "primes": primes_up_to(payload.n)}


def primes_up_to(n: int) -> int:
    """Count them with the sieve of Eratosthenes."""
    if n < 2:  # noqa: PLR2004 - the first prime
        return 0
    sieve = bytearray([1]) * (n + 1)
    sieve[:2] = b"\0\0"
    for number in range(2, isqrt(n) + 1):
        if sieve[number]:
            multiples = range(number * number, n + 1, number)
            sieve[multiples.start :: number] = bytes(len(multiples))
    return sum(sieve)
