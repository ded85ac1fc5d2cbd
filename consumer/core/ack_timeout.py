"""Whether the broker waits long enough for our acks.

It takes back what is in hand for longer than its consumer_timeout. Nothing runs twice for that, but the session ends,
and every delivery in hand is charged one of its deliveries.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from consumer.core.findings import Finding, Severity, listed

WAY_OUT = "set a longer consumer_timeout on the broker and tell broker.ack_timeout_seconds, or shorten"


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Seconds. `timeouts` by kind; `places` is how many jobs a child has in hand, the running one included."""

    timeouts: Mapping[str, float]
    places: int
    kill_grace: float

    @property
    def longest_run(self) -> float:
        return max(self.timeouts.values(), default=0) + self.kill_grace

    @property
    def longest(self) -> float:
        """The last of a child's jobs waits for all runs before it. How long it waited for its place comes on top."""
        return self.places * self.longest_run


def too_long(times: RunTimes, ack_timeout: float) -> Iterator[Finding]:
    """`ack_timeout` in seconds; 0: there is none."""
    if not ack_timeout or times.longest < ack_timeout:
        return
    kinds = [kind for kind, timeout in times.timeouts.items() if timeout + times.kill_grace >= ack_timeout]
    wanted = f"less than the broker's ack timeout of {ack_timeout:g} s"
    if kinds:
        found = f"up to {times.longest_run:g} s for {listed(sorted(kinds))}"
        yield Finding(Severity.FAULT, "one run of a job", found, wanted, f"{WAY_OUT} the kind's timeout")
        return
    found = f"up to {times.longest:g} s ({times.places} runs, one after the other)"
    way_out = f"{WAY_OUT} timeouts or pool.look_ahead"
    yield Finding(Severity.WARNING, "a job and those before it at its child", found, wanted, way_out)
