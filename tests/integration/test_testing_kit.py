"""The kit for users' tests says of a run what a real child says of it."""

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from consumer.core.job import Job
from consumer.core.outcome import Interrupted, Outcome, TimedOut, Usage
from consumer.core.ports import Work
from consumer.testing.handlers import kinds_of
from consumer.testing.rehearsal import Rehearsal, rehearse, rehearse_async
from consumer.testing.stage import DEFAULTS
from consumer.worker.catalogue import Sort
from consumer.worker.loading import Kind
from tests.support.pools import JOBS, pool

MODULES = ("ordinary", "results", "finals", "waiting", "talking")
FOLLOW_UPS = {"follow_ups": [{"kind": "k", "payload": {"a": 1.5}}, {"kind": "l", "payload": 1, "key": "b", "delay": 2}]}
RUNS: list[tuple[str, Any, float]] = [
    ("echo", {"a": [1.0, "é", None, 12345678901234567890]}, 10),
    ("echo", b'{"a": 1, "a": 2}', 10),
    ("echo", b"[" * 101 + b"]" * 101, 10),
    ("echo", b"\xef\xbb\xbf1", 10),
    ("sleep", {"seconds": "secret"}, 10),
    ("sleep", {"seconds": 60}, 0.3),
    ("strict", {"day": "2026-01-31", "count": 4}, 10),
    ("strict", {"day": "2026-01-31", "count": "4"}, 10),
    ("flaky", 3, 10),
    ("always_fails", 1, 10),
    ("retry", 7.5, 10),
    ("reject", 1, 10),
    ("gives_up", 1, 10),
    *((kind, 1, 10) for kind in ("unpicklable", "unspeakable", "long_error", "validation_error", "nan", "surrogate")),
    *((kind, 1, 10) for kind in ("set", "circle", "model")),
    ("huge", 16 * 1024 * 1024, 10),
    ("async_echo", {"a": 1}, 10),
    ("async_echo", b"NaN", 10),
    ("nap", {"seconds": 60}, 0.3),
    ("asks_for_more", FOLLOW_UPS, 10),
    ("asks_for_more", FOLLOW_UPS | {"fails": True}, 10),
    ("asks_for_more", {"follow_ups": [{"kind": "", "payload": 1}]}, 10),
]


async def test_a_run_in_the_kit_ends_as_it_does_in_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(JOBS)
    kinds = kinds_of((), MODULES)
    async with pool(modules=MODULES, processes=1, result_limit=DEFAULTS.result_limit) as bench:
        for kind, payload, timeout in RUNS:
            body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
            theirs = await bench.run(kind, body=body, seconds=timeout)
            ours = await rehearsed(kinds[kind], Work(Job(kind, "key", body), 1, timeout))
            assert comparable(ours) == comparable(theirs), f"{kind} {body[:100]!r}"


async def rehearsed(kind: Kind, work: Work) -> Outcome:
    rehearsal = Rehearsal(kind, work, now)
    ran = await rehearse_async(rehearsal) if kind.offer.sort is Sort.IO else rehearse(rehearsal)
    return ran.outcome


def now() -> int:
    return round(time.time() * 1000)


def comparable(outcome: Outcome) -> Outcome:
    """Without what differs from one run to the next."""
    assert not isinstance(outcome, Interrupted)
    if isinstance(outcome, TimedOut):  # where it was interrupted is in the traceback, down to who did it
        outcome = replace(outcome, fault=replace(outcome.fault, traceback=""))
    return replace(outcome, usage=Usage())
