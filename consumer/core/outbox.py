"""Follow-up jobs: written with the result that asks for them, published afterwards."""

from dataclasses import dataclass

DOUBLINGS = 6
"""How often the wait between two tries to send the same follow-up doubles."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A job that a handler asked for. `queue` None: that of its parent. `delay` in ms, 0: at once."""

    kind: str
    key: str
    payload: bytes
    queue: str | None
    delay: int


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A follow-up as the store keeps it until it is published; `id` is the store's. Times are epoch milliseconds."""

    id: int
    kind: str
    key: str
    payload: bytes
    queue: str | None
    due: int | None
    traceparent: str | None
    deadline: int | None
    submitted_at: int | None = None


def first_try(follow_up: FollowUp, now: int) -> int:
    """When it may be sent. A wait for another queue is spent in the store.

    The delay ladder is no place for what nobody may ever take: a few messages that no queue takes hold up all others.
    """
    return now if follow_up.queue is None else now + follow_up.delay


def next_try(now: int, lease: int, tries: int) -> int:
    """When one that was taken for sending, and not sent, may be taken again. `tries`: how often it was before."""
    return now + (lease << min(tries, DOUBLINGS))
