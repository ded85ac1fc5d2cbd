"""The in-memory twin: the same contract without a file or a server, for tests and for trying things out."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from consumer.core import cancel
from consumer.core.claim import Claim, ClaimRequest, decide
from consumer.core.cooldown import Cooldown
from consumer.core.outbox import Outgoing
from consumer.core.ports import Clock
from consumer.core.row import Change, Mark, Ref, Row, Status
from consumer.core.sweep import is_forgettable, is_overdue, is_stuck
from consumer.store.change import apply, storable
from consumer.store.letters_memory import MemoryLetters
from consumer.store.outbox_memory import MemoryOutbox


class MemoryBackend:
    """Nothing here awaits, so that every batch is a transaction by itself."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rows: dict[tuple[str, str], Row] = {}
        self.follow_ups = MemoryOutbox()
        self.letters = MemoryLetters(clock)
        self._cooldowns: dict[str, Cooldown] = {}

    async def claim(self, requests: Sequence[ClaimRequest]) -> list[Claim]:
        return [self._claim(request) for request in requests]

    async def write(self, changes: Sequence[Change]) -> list[bool]:
        return [self._write(change) for change in changes]

    async def renew(self, refs: Sequence[Ref], lease: int) -> frozenset[Ref]:
        return frozenset(ref for ref in refs if not self._renew(ref, lease))

    async def find(self, kind: str, key: str) -> Row | None:
        return self._rows.get((kind, key))

    async def cancel(self, kind: str, key: str, by: str) -> Row:
        row = cancel.decide(self._rows.get((kind, key)), kind, key, by, self._clock())
        self._save(row)
        return row

    async def cancelled(self, refs: Sequence[Ref]) -> frozenset[Ref]:
        rows = {ref: self._rows.get((ref.kind, ref.key)) for ref in refs}
        return frozenset(ref for ref, row in rows.items() if row is not None and row.status is Status.CANCELLED)

    async def progress(self, marks: Sequence[Mark]) -> None:
        for mark in marks:
            row = self._running(mark.ref)
            if row is not None:
                self._save(replace(row, progress=mark.fraction, progress_note=storable(mark.note)))

    async def submit(self, row: Row) -> Row:
        return self._rows.setdefault((row.kind, row.key), replace(row, first_seen_at=self._clock()))

    async def stuck(self, grace: int) -> Counter[Status]:
        return Counter(row.status for row in self._rows.values() if is_stuck(row, grace, self._clock()))

    async def overdue(self, kinds: Collection[str], grace: int, limit: int) -> list[Row]:
        ours = (row for row in self._rows.values() if row.kind in kinds and row.payload is not None)
        return [row for row in ours if is_overdue(row, grace, self._clock())][:limit]

    async def swept(self, refs: Sequence[Ref]) -> None:
        for ref in refs:
            row = self._rows.get((ref.kind, ref.key))
            if row is not None and row.token == ref.token:
                self._save(replace(row, swept_at=self._clock()))

    async def prune(self, age: int, limit: int) -> int:
        done = [name for name, row in self._rows.items() if is_forgettable(row, age, self._clock())]
        for name in done[:limit]:
            del self._rows[name]
        return len(done[:limit])

    async def outbox(self, limit: int, lease_ms: int) -> list[Outgoing]:
        return self.follow_ups.take(limit, lease_ms, self._clock())

    async def sent(self, ids: Sequence[int]) -> None:
        self.follow_ups.sent(ids)

    async def unsent(self) -> int:
        return self.follow_ups.unsent(self._clock())

    async def cool(self, cooldown: Cooldown) -> None:
        known = self._cooldowns.get(cooldown.kind)
        if known is None or known.until < cooldown.until:
            self._cooldowns[cooldown.kind] = replace(cooldown, why=storable(cooldown.why))

    async def warm(self, kind: str) -> None:
        self._cooldowns.pop(kind, None)

    async def cooldowns(self) -> list[Cooldown]:
        return list(self._cooldowns.values())

    async def probe(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def _claim(self, request: ClaimRequest) -> Claim:
        answer, row = decide(self._rows.get((request.kind, request.key)), request, self._clock())
        self._save(row)
        return answer

    def _write(self, change: Change) -> bool:
        says_so, row = apply(self._rows.get((change.ref.kind, change.ref.key)), change, self._clock())
        if row is not None:
            self._save(row)
            self.follow_ups.post(change, self._clock())
        return says_so

    def _renew(self, ref: Ref, lease: int) -> bool:
        row = self._running(ref)
        if row is None:
            return False
        self._save(replace(row, lease_until=self._clock() + lease))
        return True

    def _running(self, ref: Ref) -> Row | None:
        row = self._rows.get((ref.kind, ref.key))
        held = row is not None and row.token == ref.token and row.status is Status.PROCESSING
        return row if held else None

    def _save(self, row: Row | None) -> None:
        if row is not None:
            self._rows[row.kind, row.key] = row
