"""The program: one delivery through all hops, settled exactly once. The file to open first.

receive → decode → admit → claim → execute → decide → carry out → settle
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from consumer.core.admission import put_off, turned_away
from consumer.core.checkpoint import Checkpoint
from consumer.core.claim import Claim, Conflict, Done, Run, Spent, Wait
from consumer.core.claimant import request, turned_down
from consumer.core.decode import decode
from consumer.core.disposition import (
    Complete,
    DeadLetter,
    Defer,
    Disposition,
    Duplicate,
    Release,
    Retry,
    Settlement,
)
from consumer.core.errors import StoreRefused, StoreUnavailable, Unavailable
from consumer.core.job import Fault, Job, Message, Refusal
from consumer.core.letters import buried, id_for
from consumer.core.outcome import Interrupted, Outcome, Succeeded, Usage
from consumer.core.policy import KindPolicy
from consumer.core.ports import Chance, Clock, Delivery, Parcel, Slot, Work
from consumer.core.retry import decide, last_moment
from consumer.core.rooms import Rooms, Rules
from consumer.core.row import Change, Ref, Status
from consumer.core.verdict import Verdict
from schemas.codes import Code


class Superseded(Exception):
    """A newer run answers for the key, or the row is gone (a failover to a replica that lagged behind).

    Which of the two, the redelivery finds out at its claim: the delivery goes back, nothing is acked on a guess.
    """


class Processor:
    def __init__(self, rooms: Rooms, rules: Rules, clock: Clock, chance: Chance) -> None:
        self._rooms = rooms
        self._rules = rules
        self._clock = clock
        self._chance = chance

    async def process(self, delivery: Delivery) -> None:
        """Carry one delivery from receive to settle. Never raises for anything that the message holds."""
        job = decode(delivery.message, self._rules.decode)
        if isinstance(job, Refusal):
            await self._finish(delivery, _refused(job))
            return
        async with self._rooms.turns.turn((job.kind, job.key)):
            await self._finish(delivery, self._weighed(await self._judge(delivery, job)))

    async def _judge(self, delivery: Delivery, job: Job) -> Verdict:
        """Admit, claim, execute, decide."""
        policy = self._rooms.catalogue.policy(job.kind)
        slot = await self._admit(delivery, job, policy)
        try:
            if isinstance(slot, DeadLetter):
                return await self._given_up(job, slot)
            if isinstance(slot, Disposition):
                return Verdict(slot, job.kind, job.key, job)
            assert policy is not None, "turned_away answers for unknown kinds"
            return await self._run(job, policy, slot)
        except StoreUnavailable as error:
            self._rooms.intake.trip(error)
            return Verdict(Release("store_unavailable"), job.kind, job.key, job)
        except StoreRefused as error:
            return Verdict(DeadLetter(Fault(Code.MISSING_KEY, "StoreRefused", str(error))), job.kind, job.key, job)

    async def _given_up(self, job: Job, refusal: DeadLetter) -> Verdict:
        """Not run any more; but the store must say so, and may know that it was done long ago."""
        claim = await self._claim(job)
        if isinstance(claim, Run):
            return Verdict(refusal, job.kind, job.key, job, claim)
        return self._without_a_run(job, claim)

    async def _run(self, job: Job, policy: KindPolicy, slot: Slot) -> Verdict:
        try:
            claim = await self._claim(job)
            if not isinstance(claim, Run):
                return self._without_a_run(job, claim)
            outcome = await slot.run(Work(job, claim.attempt, policy.timeout, claim.alone))
            self._rooms.checkpoints.passed(Checkpoint.AFTER_RUN)
        finally:
            slot.free()
        return self._decided(job, claim, policy, outcome)

    async def _admit(self, delivery: Delivery, job: Job, policy: KindPolicy | None) -> Slot | Disposition:
        refusal = self._turned_away(delivery, job, policy, self._rooms.cooldowns.due)
        if refusal is not None:
            return refusal
        slot = await self._rooms.slots.take(job.kind)
        if slot is None:
            return Release("intake_stopped")
        late = self._turned_away(delivery, job, policy, self._rooms.cooldowns.enter)
        if late is not None:
            slot.free()
        return late or slot

    def _turned_away(
        self, delivery: Delivery, job: Job, policy: KindPolicy | None, cooled: Callable[[str, int], int | None]
    ) -> Disposition | None:
        now = self._clock()
        refusal = turned_away(delivery.message, job, policy, self._rules.admission, now)
        if refusal is not None or (due := cooled(job.kind, now)) is None:
            return refusal
        return put_off(job, policy, due, "cooling_down")

    async def _claim(self, job: Job) -> Claim:
        rules = self._rules
        claim = await self._rooms.store.claim(request(job, rules.owner, rules.lease, rules.crash_limit))
        if isinstance(claim, Run):
            self._rooms.leases.hold(Ref(job.kind, job.key, claim.token))
            self._rooms.checkpoints.passed(Checkpoint.AFTER_CLAIM)
        return claim

    def _without_a_run(self, job: Job, claim: Spent | Done | Conflict | Wait) -> Verdict:
        held = claim if isinstance(claim, Spent) else None
        return Verdict(turned_down(claim, self._clock()), job.kind, job.key, job, held)

    def _decided(self, job: Job, claim: Run, policy: KindPolicy, outcome: Outcome) -> Verdict:
        now, cooled = self._clock(), None
        self._rooms.cooldowns.heard(job.kind, outcome, now)
        if not isinstance(outcome, Succeeded):  # nobody asks that of a success, and copying costs
            job = replace(job, since=job.since or _usage(outcome).started_at or now)
            cooled = self._rooms.cooldowns.due(job.kind, now)
        last = last_moment(job, policy.retry, now)
        disposition = decide(outcome, claim.attempt, policy.retry, last, now, self._chance, cooled)
        return Verdict(disposition, job.kind, job.key, job, claim, outcome)

    def _weighed(self, verdict: Verdict) -> Verdict:
        """Not buried while too many jobs are: it comes back when we look whether they still are."""
        weighed = self._rooms.burials.weigh(verdict.disposition, self._clock())
        return verdict if weighed is verdict.disposition else replace(verdict, disposition=weighed)

    async def _finish(self, delivery: Delivery, verdict: Verdict) -> None:
        """Carry out and settle: the one place that settles."""
        try:
            verdict, settlement = await self._carry_out_or_bury(delivery, verdict)
        except Superseded:
            settlement = Settlement.RELEASE
        except Unavailable as error:
            self._rooms.intake.trip(error)
            settlement = Settlement.RELEASE
            with suppress(StoreUnavailable):
                await self._give_back(verdict)
        if verdict.claim is not None and verdict.job is not None:
            self._rooms.leases.drop(_ref(verdict.job, verdict.claim))
        if settlement is Settlement.ACK:
            self._rooms.checkpoints.passed(Checkpoint.BEFORE_ACK)
        on_time = await delivery.settle(settlement)
        self._rooms.journal.settled(delivery, verdict, settlement, on_time)

    async def _carry_out_or_bury(self, delivery: Delivery, verdict: Verdict) -> tuple[Verdict, Settlement]:
        """A result that the store can't hold is the job's own failure: tried again, it would be refused again."""
        try:
            return verdict, await self._carry_out(delivery, verdict)
        except StoreRefused as error:
            refused = replace(verdict, disposition=DeadLetter(Fault(Code.RESULT_NOT_JSON, "StoreRefused", str(error))))
            return refused, await self._carry_out(delivery, refused)

    async def _carry_out(self, delivery: Delivery, verdict: Verdict) -> Settlement:
        """The order is the promise: commit or confirm first, then record, then ack."""
        message = delivery.message
        match verdict.disposition:
            case Complete(outcome):
                await self._record(verdict, Status.SUCCEEDED, done=outcome)
            case Retry() as retry:
                assert verdict.job is not None, "only a run is retried"
                await self._delay(partial(self._rooms.copier.retry, message, verdict.job, verdict.attempt, retry))
                await self._record(verdict, Status.RETRYING, fault=retry.fault, due=retry.due)
            case DeadLetter(fault):
                await self._bury(message, verdict, fault)
                await self._record(verdict, Status.FAILED, fault=fault)
            case Defer(due) as put_off_until:
                assert verdict.job is not None, "only a job is put off"
                await self._delay(partial(self._rooms.copier.defer, message, verdict.job, put_off_until))
                await self._record(verdict, Status.PENDING, due=due)
            case Duplicate():
                pass
            case Release():
                await self._give_back(verdict)
                return Settlement.RELEASE
        return Settlement.ACK

    async def _delay(self, copy: Callable[[int], Parcel]) -> None:
        """Into the delay queues; how long it has to wait is counted when its turn has come."""
        async with self._rooms.copying:
            await self._publish(copy(self._clock()))

    async def _bury(self, message: Message, verdict: Verdict, fault: Fault) -> None:
        """Into the queue, and then into the index, by which people look at it."""
        await self._make_sure_of_the_claim(verdict)
        now, letter_id = self._clock(), id_for(verdict, self._chance)
        copy = self._rooms.copier.dead(message, fault, verdict.attempt, now, letter_id, verdict.generation)
        await self._publish(copy)
        await self._rooms.store.bury(buried(copy.message, self._rooms.copier.topology, verdict, fault, now))

    async def _make_sure_of_the_claim(self, verdict: Verdict) -> None:
        """A dead letter can't be taken back: nobody shall have another outcome for the key, now or while it is sent."""
        if verdict.claim is None or verdict.job is None:
            return
        if await self._rooms.store.renew([_ref(verdict.job, verdict.claim)], self._rules.lease):
            raise Superseded

    async def _publish(self, copy: Parcel) -> None:
        await self._rooms.publisher.publish(copy)
        self._rooms.checkpoints.passed(Checkpoint.AFTER_CONFIRM)

    async def _record(
        self,
        verdict: Verdict,
        status: Status,
        *,
        done: Succeeded | None = None,
        fault: Fault | None = None,
        due: int | None = None,
    ) -> None:
        """Write what became of a claim; raise Superseded where the row no longer knows the claim."""
        if verdict.claim is None or verdict.job is None:
            return
        usage = _usage(verdict.outcome)
        known = await self._rooms.store.write(
            Change(
                ref=_ref(verdict.job, verdict.claim),
                status=status,
                result=done.result if done else None,
                follow_ups=done.follow_ups if done else (),
                traceparent=verdict.job.traceparent,
                deadline=verdict.job.deadline,
                fault=fault,
                due_at=due,
                started_at=usage.started_at or None,
                finished_at=usage.finished_at or None,
                cpu_seconds=usage.cpu_seconds,
                peak_memory=usage.peak_memory,
            )
        )
        if status is not Status.PENDING:
            if not known:
                raise Superseded
            self._rooms.checkpoints.passed(Checkpoint.AFTER_COMMIT)

    async def _give_back(self, verdict: Verdict) -> None:
        await self._record(verdict, Status.PENDING)


def _refused(refusal: Refusal) -> Verdict:
    fault = Fault(refusal.code, "Refused", refusal.detail)
    return Verdict(DeadLetter(fault), refusal.kind, refusal.key)


def _ref(job: Job, claim: Run | Spent) -> Ref:
    return Ref(job.kind, job.key, claim.token)


def _usage(outcome: Outcome | None) -> Usage:
    return Usage() if outcome is None or isinstance(outcome, Interrupted) else outcome.usage
