"""Every metric that the daemon exports, on one registry that is passed in.

Labels are closed sets: queue, kind (unknown ones share `_unknown`) and enums. Each bound label set exists at 0 from
the start, else the first dead letter would never show as an increase.
"""

import platform
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from itertools import product
from typing import Any, Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

from consumer.core.error_types import ErrorTypes
from consumer.core.sweep import LIVE
from schemas.codes import Code

UNKNOWN_KIND = "_unknown"
RUN = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
WAIT = (0.01, 0.05, 0.1, 0.5, 1, 5, 15, 30, 60, 300, 900, 1800, 3600, 14400)
END_TO_END = (*WAIT, 86400)
LAG = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
ATTEMPTS = (1, 2, 3, 5, 8, 13, 21)
BATCH = (1, 2, 4, 8, 16, 32, 64, 128, 256)
DISPOSITIONS = ("complete", "duplicate", "retry", "dead_letter", "defer", "release")
PUBLISH_TARGETS = ("retry", "dead_letter", "submit", "follow_up")
PUBLISH_RESULTS = ("confirmed", "returned", "nacked", "timeout", "error")
SESSION_REASONS = (
    "connect_error",
    "closed",
    "heartbeat",
    "cancelled",
    "channel_closed",
    "publish_failed",
    "undecodable",
    "watchdog",
)
POOLS = ("cpu", "io")
EXIT_REASONS = ("crash", "out_of_memory", "timeout", "cancel", "stopped", "damaged", "recycle", "drain")
STORE_OPERATIONS = (
    "claim",
    "write",
    "bury",
    "renew",
    "find",
    "submit",
    "cancel",
    "progress",
    "outbox",
    "cooldown",
    "sweep",
    "prune",
    "probe",
)
RETRIED = (Code.ATTEMPTS_EXHAUSTED, Code.EXECUTION_TIMEOUT, Code.WORKER_CRASHED, Code.OUT_OF_MEMORY)
"""Under which codes a run may be tried again."""


class PoolFigures(Protocol):
    """The pool at one moment, children by the two sorts. `oldest_start`: start of the longest running job, epoch ms."""

    @property
    def children(self) -> Mapping[str, int]: ...
    @property
    def busy(self) -> Mapping[str, int]: ...
    @property
    def running(self) -> int: ...
    @property
    def slots(self) -> int: ...
    @property
    def waiting(self) -> int: ...
    @property
    def oldest_start(self) -> int | None: ...


class Metrics:
    """One instance a process. `expect` binds the label sets once the kinds are known."""

    def __init__(self, registry: CollectorRegistry, queue: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry
        self.queue = queue
        self.error_types = ErrorTypes()
        self._kinds: frozenset[str] = frozenset()
        ProcessCollector(registry=registry)
        self._flow(registry)
        self._times(registry)
        self._state(registry)
        self._machinery(registry)

    def _flow(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"consumer_{name}", text, labels, registry=registry)

        self.received = counter("messages_received", "Deliveries handed to us", "queue", "redelivered")
        self.settled = counter(
            "jobs_settled", "Deliveries settled; the sum is all of them", "queue", "kind", "disposition"
        )
        self.retries = counter("job_retries", "Retry copies confirmed by the broker, by why", "queue", "kind", "reason")
        self.dead_letters = counter(
            "dead_letters", "Dead-letter copies confirmed by the broker", "queue", "kind", "code"
        )
        self.exceptions = counter(
            "handler_exceptions",
            "Exceptions out of handlers; types beyond the first 50 are _OTHER",
            "queue",
            "kind",
            "error_type",
        )
        self.settlements = counter(
            "settlements",
            "Acks and nacks; stale: the channel was gone, the broker redelivers",
            "queue",
            "operation",
            "result",
        )
        self.publishes = counter("publishes", "Copies published, by what the broker said", "target", "result")

    def _times(self, registry: CollectorRegistry) -> None:
        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"consumer_{name}", text, labels, registry=registry, buckets=buckets)

        self.job_seconds = histogram("job_seconds", "Wall time of a run", RUN, "queue", "kind")
        self.job_cpu_seconds = histogram("job_cpu_seconds", "CPU time of a run in its child", RUN, "queue", "kind")
        self.queue_wait = histogram(
            "queue_wait_seconds", "From publish, or from the due time of a retry, to start", WAIT, "queue"
        )
        self.end_to_end = histogram("end_to_end_seconds", "From submission to the final outcome", END_TO_END, "queue")
        self.lateness = histogram(
            "retry_lateness_seconds", "How much after its due time a retry was delivered", WAIT, "queue"
        )
        self.attempts = histogram("job_attempts", "Attempts at the final outcome", ATTEMPTS, "queue")
        self.loop_lag = histogram("event_loop_lag_seconds", "How late the event loop woke a sleeper", LAG)
        self.store_seconds = histogram("store_operation_seconds", "Time of a store batch", RUN, "operation")
        self.store_batch = histogram("store_batch_size", "Items in a store batch", BATCH, "operation")

    def _state(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"consumer_{name}", text, labels, registry=registry)

        self.running = gauge("jobs_running", "Jobs running in children now", "queue")
        self.waiting = gauge("jobs_waiting", "Deliveries in hand that wait for a place", "queue")
        self.slots = gauge("slots", "Places in the pool, look-ahead included", "queue")
        self.prefetch = gauge("prefetch", "Unsettled deliveries that the broker hands us at most", "queue")
        self.oldest_running = gauge(
            "oldest_running_start_timestamp_seconds", "Start of the oldest running job; 0: none", "queue"
        )
        self.last_settled = gauge("last_settled_timestamp_seconds", "When a delivery was last settled", "queue")
        self.last_received = gauge(
            "last_received_message_timestamp_seconds", "Publish time of the newest first delivery", "queue"
        )
        self.ready = gauge(
            "queue_messages_ready",
            "Messages ready on the broker; the same on every replica: max by, never sum",
            "queue",
            "role",
        )
        self.consumers = gauge("queue_consumers", "Consumers on the broker; the same on every replica", "queue", "role")
        self.poll_success = gauge("queue_poll_last_success_timestamp_seconds", "When the queue depths were last read")
        self.poll_errors = Counter("consumer_queue_poll_errors", "Failed reads of queue depths", registry=registry)
        self.connected = gauge("broker_connected", "1 while a session with the broker is up")
        self.blocked = gauge("broker_blocked", "1 while an alarm on the broker holds back our publishes")
        self.draining = gauge("draining", "1 between the signal to stop and the end")
        self.paused = gauge("paused", "1 while we take in nothing on purpose")
        self.stuck = gauge("store_stuck_jobs", "Rows that wait in vain; the same on every replica: max by", "status")
        self.unsent = gauge(
            "store_unsent_follow_ups", "Follow-ups that should be on the broker; the same on every replica", "queue"
        )
        self.breaker = gauge("breaker_open", "1 while a breaker is open", "breaker", "kind")

    def _machinery(self, registry: CollectorRegistry) -> None:
        self.sessions = Counter(
            "consumer_broker_sessions", "Sessions that ended, by why", ["reason"], registry=registry
        )
        self.last_tick = Gauge(
            "consumer_event_loop_last_tick_timestamp_seconds",
            "When the event loop last ran",
            registry=registry,
        )
        self.children = Gauge("consumer_children", "Worker processes that can take jobs", ["pool"], registry=registry)
        self.busy_ratio = Gauge(
            "consumer_child_busy_ratio", "Share of children that have a job now", ["pool"], registry=registry
        )
        self.exits = Counter(
            "consumer_child_exits", "Children that ended, by why", ["pool", "reason"], registry=registry
        )
        self.store_operations = Counter(
            "consumer_store_operations",
            "Store batches, by result",
            ["operation", "result"],
            registry=registry,
        )
        build = Gauge(
            "consumer_build_info",
            "1; what is running",
            ["version", "revision", "python_version"],
            registry=registry,
        )
        build.labels(version("consumer"), "", platform.python_version()).set(1)

    def expect(self, kinds: Iterable[str]) -> None:
        """Create every bound label set at 0."""
        self._kinds = frozenset(kinds)
        kinds = [*self._kinds, UNKNOWN_KIND]
        metric: Any
        names: tuple[Iterable[str], ...]
        for metric, names in (
            (self.received, (("true", "false"),)),
            (self.settled, (kinds, DISPOSITIONS)),
            (self.dead_letters, (kinds, Code)),
            (self.retries, (kinds, RETRIED)),
            (self.job_seconds, (kinds,)),
            (self.job_cpu_seconds, (kinds,)),
            (self.settlements, (("ack", "nack"), ("ok", "stale"))),
        ):
            for values in product((self.queue,), *names):
                metric.labels(*values)
        for metric, names in (
            (self.publishes, (PUBLISH_TARGETS, PUBLISH_RESULTS)),
            (self.sessions, (SESSION_REASONS,)),
            (self.exits, (POOLS, EXIT_REASONS)),
            (self.store_operations, (STORE_OPERATIONS, ("ok", "error"))),
            (self.store_seconds, (STORE_OPERATIONS,)),
            (self.store_batch, (STORE_OPERATIONS,)),
            (self.children, (POOLS,)),
            (self.busy_ratio, (POOLS,)),
            (self.breaker, (("intake", "dead_letter"), ("",))),
            (self.breaker, (("kind",), kinds)),
            (self.stuck, (LIVE,)),
        ):
            for values in product(*names):
                metric.labels(*values)
        self._expect_by_queue()

    def _expect_by_queue(self) -> None:
        for metric in (
            self.queue_wait,
            self.end_to_end,
            self.lateness,
            self.attempts,
            self.running,
            self.waiting,
            self.slots,
            self.prefetch,
            self.oldest_running,
            self.last_settled,
            self.last_received,
            self.unsent,
        ):
            metric.labels(self.queue)

    def show_pool(self, figures: Callable[[], PoolFigures], prefetch: int) -> None:
        """Read the pool's figures when somebody scrapes, not before."""
        queue = self.queue
        self.prefetch.labels(queue).set(prefetch)
        self.slots.labels(queue).set_function(lambda: figures().slots)
        self.running.labels(queue).set_function(lambda: figures().running)
        self.waiting.labels(queue).set_function(lambda: figures().waiting)
        self.oldest_running.labels(queue).set_function(lambda: (figures().oldest_start or 0) / 1000)
        for pool in POOLS:
            self._show_children(pool, figures)

    def _show_children(self, pool: str, figures: Callable[[], PoolFigures]) -> None:
        self.children.labels(pool).set_function(lambda: figures().children[pool])
        self.busy_ratio.labels(pool).set_function(lambda: figures().busy[pool] / max(figures().children[pool], 1))

    def child_exited(self, pool: str, reason: str) -> None:
        self.exits.labels(pool, reason).inc()

    def kind_cools(self, kind: str, cools: bool) -> None:
        """Nothing of kinds that we don't run: others may share the store."""
        if kind in self._kinds:
            self.breaker.labels("kind", kind).set(cools)

    def store_observed(self, operation: str, result: str, seconds: float, batch_size: int) -> None:
        self.store_operations.labels(operation, result).inc()
        self.store_seconds.labels(operation).observe(seconds)
        self.store_batch.labels(operation).observe(batch_size)

    def publish_observed(self, target: str, result: str) -> None:
        self.publishes.labels(target, result).inc()
