"""The ladder's arithmetic, followed by hand through the topology that is declared from it."""

from hypothesis import given
from hypothesis import strategies as st

from consumer.core.delay import Ladder
from consumer.core.topology import Binding, build

LADDER = Ladder("jobs", tick=100, levels=18)
TOPOLOGY = build("jobs", "etl.big", LADDER, 100)


def matches(pattern: str, key: str) -> bool:
    """A topic match, for patterns whose # stands at the end."""
    words, wanted = key.split("."), pattern.split(".")
    if wanted[-1] == "#":
        words, wanted = words[: len(wanted) - 1], wanted[:-1]
    return len(words) == len(wanted) and all(w in ("*", word) for w, word in zip(wanted, words, strict=True))


def walk(wait: int) -> tuple[int, str]:
    """Follow a message through bindings and dead-letter exchanges; return its total wait and where it ends."""
    arguments = {queue.name: queue.arguments for queue in TOPOLOGY.queues}
    place, key = LADDER.route(wait, "etl.big")
    waited = 0
    while True:
        found: list[Binding] = [b for b in TOPOLOGY.bindings if b.source == place and matches(b.routing_key, key)]
        assert len(found) == 1, f"{key} at {place} goes to {found}"
        if found[0].to_exchange:
            place = found[0].destination
            continue
        queue = found[0].destination
        if queue == TOPOLOGY.work_queue:
            return waited, queue
        waited += int(arguments[queue]["x-message-ttl"])
        place = str(arguments[queue]["x-dead-letter-exchange"])


@given(wait=st.integers(1, LADDER.span))
def test_every_wait_reaches_the_work_queue_after_itself_rounded_up_to_ticks(wait: int) -> None:
    waited, queue = walk(wait)
    assert queue == "jobs.etl.big"
    assert wait <= waited < wait + LADDER.tick


def test_a_wait_of_nothing_still_takes_one_tick() -> None:
    assert walk(0)[0] == LADDER.tick
    assert walk(-5)[0] == LADDER.tick


def test_a_wait_beyond_the_span_takes_one_whole_round() -> None:
    assert walk(10 * LADDER.span)[0] == LADDER.span


def test_no_delay_queue_expires_or_overflows_in_silence() -> None:
    for queue in TOPOLOGY.queues:
        assert "x-expires" not in queue.arguments
        assert queue.arguments["x-queue-type"] == "quorum"
        if "x-message-ttl" in queue.arguments:
            assert queue.arguments["x-dead-letter-strategy"] == "at-least-once"
            assert queue.arguments["x-overflow"] == "reject-publish"


def test_the_number_of_queues_depends_on_the_levels_alone() -> None:
    assert len(TOPOLOGY.queues) == 3 + LADDER.levels


@given(wait=st.integers(0, 2 * LADDER.span))
def test_a_routing_key_tells_the_queue_that_it_was_made_for(wait: int) -> None:
    assert LADDER.destination(LADDER.route(wait, "etl.big")[1]) == "etl.big"
