"""The three stores under one handle, and the requests that the contract makes of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from consumer.core.claim import ClaimRequest, Run
from consumer.core.job import Fault
from consumer.core.ports import Store
from consumer.core.row import Change, Ref, Row, Status
from consumer.store.open import open_store, system_clock
from schemas.codes import Code

KIND = "mail.send"
LEASE = 60_000
FAULT = Fault(Code.REJECTED, "ValueError", "no such address", "Traceback …")


class HandClock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now


class Subject:
    """A store under test. It has its own clock, and a test can't wait for that of a server: leases end by hand."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.clock = HandClock()

    @asynccontextmanager
    async def store(self, origin: str = "jobs.default") -> AsyncIterator[Store]:
        store = await open_store(self.url, clock=self.clock, origin=origin)
        try:
            yield store
        finally:
            await store.close()

    async def let_pass(self, milliseconds: int) -> None:
        if not self.url.startswith("postgresql"):
            self.clock.now += milliseconds
            return
        connection = await asyncpg.connect(self.url)
        times = ("lease_until", "due_at", "first_seen_at", "finished_at", "swept_at")
        older = ", ".join(f"{name} = {name} - {milliseconds}" for name in times)
        await connection.execute(f"UPDATE consumer_jobs SET {older}")
        await connection.execute(f"UPDATE consumer_outbox SET take_at = take_at - {milliseconds}")
        await connection.close()

    def now(self) -> int:
        return system_clock() if self.url.startswith("postgresql") else self.clock.now

    async def end_leases(self) -> None:
        if not self.url.startswith("postgresql"):
            self.clock.now += LEASE
            return
        connection = await asyncpg.connect(self.url)
        await connection.execute("UPDATE consumer_jobs SET lease_until = 1 WHERE status = 'processing'")
        await connection.close()


def claim_of(key: str = "order-7", owner: str = "us", **delivery: object) -> ClaimRequest:
    return ClaimRequest(
        **{  # type: ignore[arg-type]
            "kind": KIND,
            "key": key,
            "fingerprint": b"\x00payload",
            "owner": owner,
            "lease": LEASE,
            "crash_limit": 3,
            **delivery,
        }
    )


async def run_of(store: Store, request: ClaimRequest) -> Ref:
    """Claim it, expect to run it, and return what later writes carry."""
    answer = await store.claim(request)
    assert isinstance(answer, Run), answer
    return Ref(request.kind, request.key, answer.token)


def success(ref: Ref, result: bytes = b'{"sent":true}') -> Change:
    return Change(ref, Status.SUCCEEDED, result=result)


def retry(ref: Ref, due_at: int = 1_700_000_009_000) -> Change:
    return Change(ref, Status.RETRYING, fault=FAULT, due_at=due_at)


def failure(ref: Ref, fault: Fault = FAULT) -> Change:
    return Change(ref, Status.FAILED, fault=fault)


def release(ref: Ref) -> Change:
    return Change(ref, Status.PENDING)


async def row_of(store: Store, key: str = "order-7") -> Row:
    row = await store.find(KIND, key)
    assert isinstance(row, Row)
    return row
