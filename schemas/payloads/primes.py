from pydantic import BaseModel, NonNegativeInt


class PrimesCount(BaseModel):
    """Kind primes.count: how many primes there are up to n."""

    n: NonNegativeInt
