"""What the children said they can run. The zygote writes it, the parent reads it and never imports a job module."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from consumer.core.policy import Jitter, KindPolicy, RetryPolicy


@dataclass(frozen=True, slots=True)
class Offer:
    """One kind: how it is run and retried, and the JSON Schema of its payload."""

    policy: KindPolicy
    schema: Mapping[str, Any]


def encode(offers: Iterable[Offer]) -> bytes:
    return json.dumps([_plain(offer) for offer in offers]).encode()


def decode(text: bytes) -> dict[str, Offer]:
    offers = [_offer(**fields) for fields in json.loads(text)]
    return {offer.policy.kind: offer for offer in offers}


def _plain(offer: Offer) -> dict[str, Any]:
    plain = asdict(offer.policy)
    plain["retry"] |= {name: sorted(plain["retry"][name]) for name in ("retry_on", "no_retry_on")}
    return {"policy": plain, "schema": offer.schema}


def _offer(policy: dict[str, Any], schema: dict[str, Any]) -> Offer:
    retry = policy.pop("retry")
    retry |= {name: frozenset(retry[name]) for name in ("retry_on", "no_retry_on")}
    retry["jitter"] = Jitter(retry["jitter"])
    return Offer(KindPolicy(**policy, retry=RetryPolicy(**retry)), schema)
