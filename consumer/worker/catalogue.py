"""What the children said they can run. The zygote writes it, the parent reads it and never imports a job module."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from consumer.core.policy import Jitter, KindPolicy, RetryPolicy


class Sort(StrEnum):
    """Of a kind, and of the children that run it."""

    CPU = "cpu"  # `def`: one at a time
    IO = "io"  # `async def`: many at a time in one event loop


@dataclass(frozen=True, slots=True)
class Offer:
    """One kind: how it is run and retried, the JSON Schema of its payload, and where it runs."""

    policy: KindPolicy
    schema: Mapping[str, Any]
    sort: Sort = Sort.CPU


def encode(offers: Iterable[Offer]) -> bytes:
    return json.dumps([_plain(offer) for offer in offers]).encode()


def decode(text: bytes) -> dict[str, Offer]:
    offers = [_offer(**fields) for fields in json.loads(text)]
    return {offer.policy.kind: offer for offer in offers}


def _plain(offer: Offer) -> dict[str, Any]:
    plain = asdict(offer.policy)
    plain["retry"] |= {name: sorted(plain["retry"][name]) for name in ("retry_on", "no_retry_on")}
    return {"policy": plain, "schema": offer.schema, "sort": offer.sort}


def _offer(policy: dict[str, Any], schema: dict[str, Any], sort: str) -> Offer:
    retry = policy.pop("retry")
    retry |= {name: frozenset(retry[name]) for name in ("retry_on", "no_retry_on")}
    retry["jitter"] = Jitter(retry["jitter"])
    return Offer(KindPolicy(**policy, retry=RetryPolicy(**retry)), schema, Sort(sort))
