"""What the pipeline does while the dead-letter breaker is open."""

from consumer.core.disposition import Defer
from consumer.core.job import Fault
from consumer.core.outcome import Failed, Usage
from consumer.core.row import Status
from schemas.codes import Code
from tests.support.twins import START, World, message

ODD = Fault(Code.ATTEMPTS_EXHAUSTED, "app.Odd", "no luck")


async def test_while_nearly_everything_is_dead_lettered_jobs_are_put_off_and_not_buried() -> None:
    world = World(lambda _: Failed(ODD, Usage(START, START + 1), retryable=False))
    for number in range(120):
        await world.deliver(message(str(number)))
    put_off = [v.disposition for v, _, _ in world.notes.verdicts if isinstance(v.disposition, Defer)]
    assert len(put_off) == 21
    assert set(put_off) == {Defer(START + 30_000, "dead_letter_breaker")}
    assert (await world.row("119")).status is Status.PENDING
