from pydantic import BaseModel, ConfigDict, Field


class PrimesCount(BaseModel):
    """Kind primes.count: how many primes there are up to n."""

    model_config = ConfigDict(extra="forbid")

    n: int = Field(ge=0, le=50_000_000)
