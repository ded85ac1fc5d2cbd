"""What was seen of a broker, before anybody judges it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from consumer.core.topology import Binding


class Right(StrEnum):
    CONFIGURE = "configure"
    WRITE = "write"
    READ = "read"


@dataclass(frozen=True, slots=True)
class Difference:
    """`what` is a queue or an exchange; values are as the broker shows them."""

    what: str
    argument: str
    found: str
    wanted: str


@dataclass(frozen=True, slots=True)
class MissingRight:
    """A right that our user lacks."""

    right: Right
    what: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What AMQP shows. `held_back`: an alarm blocks what we publish, so that rights to write couldn't be tried.

    `left` counts the messages in queues of older versions of the topology, `strays` those that came out of a ladder,
    of this version or an older one, and found no work queue.
    """

    product: str = ""
    version: str = ""
    capabilities: frozenset[str] = frozenset()
    missing: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    missing_rights: tuple[MissingRight, ...] = ()
    held_back: bool = False
    left: tuple[tuple[str, int], ...] = ()
    strays: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """`name` tells which sort it is, too; `definition` is None where our user may not know."""

    name: str
    definition: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class QueueState:
    """`definition` is what its policies make of the queue, None while the broker has no statistics of it yet."""

    name: str
    type: str
    arguments: Mapping[str, Any]
    policies: tuple[Policy, ...] = ()
    definition: Mapping[str, Any] | None = None
    members: int = 1
    online: int = 1


@dataclass(frozen=True, slots=True)
class Managed:
    """What the management API shows of our queues and of all bindings of the virtual host.

    `at_least_once`: whether dead-lettering can be that; None where our user may not know.
    """

    queues: tuple[QueueState, ...] = ()
    bindings: frozenset[Binding] = frozenset()
    alarms: tuple[str, ...] = ()
    at_least_once: bool | None = True
