"""The payloads of the built-in kinds, for producers. What a handler checks is its own model in consumer.jobs."""

from pydantic import BaseModel

from schemas.payloads.primes import PrimesCount
from schemas.payloads.text import TextDigest

PAYLOADS: dict[str, type[BaseModel]] = {"primes.count": PrimesCount, "text.digest": TextDigest}

__all__ = ["PAYLOADS", "PrimesCount", "TextDigest"]
