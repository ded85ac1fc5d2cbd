"""What must be on the broker, as frozen data. `broker/declare.py` applies it."""

from dataclasses import dataclass, field, replace

from consumer.core.delay import Ladder

Argument = str | int


@dataclass(frozen=True, slots=True)
class Exchange:
    """`alternate` is the exchange that gets what finds no way out of this one."""

    name: str
    type: str
    alternate: str | None = None

    @property
    def arguments(self) -> dict[str, Argument]:
        return {} if self.alternate is None else {"alternate-exchange": self.alternate}


@dataclass(frozen=True, slots=True)
class Queue:
    """Always durable and quorum: newer brokers refuse transient ones, and work must survive a node."""

    name: str
    arguments: dict[str, Argument] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Binding:
    source: str
    destination: str
    routing_key: str
    to_exchange: bool = False


@dataclass(frozen=True, slots=True)
class Topology:
    """`queue` is the short name that producers use as routing key in exchange `namespace`.

    The exchanges `namespace` and `dead_exchange` are the same in every version, so producers notice no migration.
    """

    namespace: str
    queue: str
    ladder: Ladder
    exchanges: tuple[Exchange, ...] = ()
    queues: tuple[Queue, ...] = ()
    bindings: tuple[Binding, ...] = ()

    @property
    def work_queue(self) -> str:
        version = self.ladder.version
        return f"{self.namespace}.{self.queue}" + (f".v{version}" if version > 1 else "")

    @property
    def dead_queue(self) -> str:
        return f"{self.work_queue}.dead"

    @property
    def dead_exchange(self) -> str:
        return f"{self.namespace}.dlx"


NEVER = 1_000_000_000
"""A delivery limit for queues that nothing may fall out of; 4.x would otherwise drop at 20."""


def build(namespace: str, queue: str, ladder: Ladder, delivery_limit: int) -> Topology:
    """The topology of one namespace and one of its work queues, in the version of the ladder."""
    named = Topology(namespace, queue, ladder)
    exchanges = (
        Exchange(namespace, "direct"),
        Exchange(named.dead_exchange, "direct"),
        *(Exchange(ladder.level(k), "topic") for k in range(ladder.levels)),
        Exchange(ladder.stray, "fanout"),
        Exchange(ladder.out, "topic", alternate=ladder.stray),
    )
    queues = (
        Queue(
            named.work_queue,
            {
                "x-queue-type": "quorum",
                "x-dead-letter-exchange": named.dead_exchange,
                "x-dead-letter-routing-key": queue,
                "x-dead-letter-strategy": "at-least-once",
                "x-overflow": "reject-publish",
                "x-delivery-limit": delivery_limit,
            },
        ),
        Queue(named.dead_queue, {"x-queue-type": "quorum", "x-delivery-limit": NEVER}),
        *(_rung(ladder, k) for k in range(ladder.levels)),
        _stray(ladder),
    )
    steps = (binding for k in range(ladder.levels) for binding in _steps(ladder, k))
    stray = Binding(ladder.stray, ladder.stray, "")
    bindings = (*fed(named), *steps, stray, arrival(ladder, queue, named.work_queue))
    return replace(named, exchanges=exchanges, queues=queues, bindings=bindings)


def fed(topology: Topology) -> tuple[Binding, Binding]:
    """What brings new work, and dead letters, into the queues of this version."""
    return (
        Binding(topology.namespace, topology.work_queue, topology.queue),
        Binding(topology.dead_exchange, topology.dead_queue, topology.queue),
    )


def arrival(ladder: Ladder, queue: str, destination: str) -> Binding:
    """What brings the waits of one queue from a ladder, of whichever version, to where its work is done."""
    return Binding(ladder.out, destination, "*." * ladder.levels + queue)


def _rung(ladder: Ladder, k: int) -> Queue:
    return Queue(
        ladder.level(k),
        {
            "x-queue-type": "quorum",
            "x-message-ttl": ladder.ttl(k),
            "x-dead-letter-exchange": _below(ladder, k),
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",
            "x-delivery-limit": NEVER,
        },
    )


def _stray(ladder: Ladder) -> Queue:
    """A rung keeps what no queue takes, and with 32 such messages it hands on nothing more: so this one takes them.

    It refuses rather than drops where a policy caps it: late retries are better than none.
    """
    return Queue(ladder.stray, {"x-queue-type": "quorum", "x-overflow": "reject-publish", "x-delivery-limit": NEVER})


def _steps(ladder: Ladder, k: int) -> tuple[Binding, Binding]:
    """At level k a 1 goes through the queue, a 0 goes straight to the level below."""
    before = "*." * (ladder.levels - 1 - k)
    return (
        Binding(ladder.level(k), ladder.level(k), f"{before}1.#"),
        Binding(ladder.level(k), _below(ladder, k), f"{before}0.#", to_exchange=True),
    )


def _below(ladder: Ladder, k: int) -> str:
    return ladder.level(k - 1) if k else ladder.out
