"""The delay ladder as arithmetic: any wait, a fixed number of queues, each with one TTL.

Level k holds a message for `tick * 2^k`. A wait of n ticks is written in binary, most significant bit first, as
the words of a routing key; at level k a 1 goes through that level's queue and a 0 goes straight on. So nothing
ever waits behind something that waits longer, and the number of queues doesn't depend on anybody's policy.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ladder:
    """`tick` in milliseconds. Changing a number means another `version`: queue arguments can't be changed."""

    namespace: str
    tick: int = 100
    levels: int = 18
    version: int = 1

    @property
    def prefix(self) -> str:
        return f"{self.namespace}.delay.v{self.version}"

    @property
    def out(self) -> str:
        """The exchange behind the last level; it knows the work queues."""
        return f"{self.prefix}.out"

    @property
    def stray(self) -> str:
        """The exchange, and its queue, for what comes out of the ladder and finds no work queue."""
        return f"{self.prefix}.stray"

    @property
    def span(self) -> int:
        """The longest wait of one round, in milliseconds; longer ones go round again."""
        return self.tick * ((1 << self.levels) - 1)

    def level(self, k: int) -> str:
        """The name of level k's exchange, and of its queue."""
        return f"{self.prefix}.{k}"

    def ttl(self, k: int) -> int:
        return self.tick << k

    def route(self, wait: int, queue: str) -> tuple[str, str]:
        """Return (exchange, routing key) for a wait in milliseconds: rounded up to ticks, at least one."""
        ticks = min(max(-(-wait // self.tick), 1), self.span // self.tick)
        bits = ".".join(f"{ticks:0{self.levels}b}")
        return self.level(ticks.bit_length() - 1), f"{bits}.{queue}"

    def destination(self, routing_key: str) -> str:
        """Which queue `route` had been asked for."""
        return routing_key.split(".", self.levels)[-1]
