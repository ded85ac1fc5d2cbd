"""What the demo publishes, as any AMQP client could: properties, a body, nothing of ours."""

import json
import random
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Publication:
    body: bytes
    type: str | None = None
    message_id: str = ""
    content_type: str = "application/json"


def job(kind: str, key: str, payload: Any) -> Publication:
    return Publication(json.dumps(payload).encode(), kind, key)


def good_jobs() -> list[Publication]:
    primes = [job("primes.count", f"primes-{n}", {"n": 1000 * n}) for n in range(1, 111)]
    digests = [job("text.digest", f"text-{n}", {"text": "hello " * n}) for n in range(1, 31)]
    flaky = [job("demo.flaky", f"flaky-{n}", {"fails": 1 + n % 3}) for n in range(1, 21)]
    return [*primes, *digests, *flaky]


def bad_jobs() -> list[Publication]:
    return [
        *(job("demo.always_fails", f"hopeless-{n}", {}) for n in range(1, 6)),
        job("demo.kills_its_child", "suicidal-1", {}),
        job("demo.overruns", "endless-1", {}),
    ]


def malformed() -> list[Publication]:
    return [
        Publication(b'{"n": 10', "primes.count", "cut-short"),
        Publication(b'{"n": NaN}', "primes.count", "not-a-number"),
        Publication(b'{"n": 1, "n": 2}', "primes.count", "said-twice"),
        Publication(b"[" * 5000 + b"]" * 5000, "primes.count", "too-deep"),
        Publication(b'{"n": "many"}', "primes.count", "wrong-payload"),
        Publication(b'{"n": 10}', "primes.count", "line\nbreak"),
        Publication(b'{"n": 10}', None, "no-kind"),
        Publication(b"n: 10", "primes.count", "yaml", content_type="application/yaml"),
        Publication(b"{}", "demo.nobody_knows", "unknown"),
    ]


def everything(seed: int = 1) -> list[Publication]:
    """About 200 messages, shuffled; 20 good ones are sent twice."""
    good = good_jobs()
    messages = [*good, *good[:20], *bad_jobs(), *malformed()]
    random.Random(seed).shuffle(messages)
    return messages
