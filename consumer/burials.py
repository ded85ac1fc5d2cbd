"""The dead-letter breaker at work: whoever opens it stops the intake, and metrics and the log hear of it."""

import structlog

from consumer.core.burials import BurialRules, DeadLetterBreaker
from consumer.core.disposition import Disposition
from consumer.core.errors import BuriedTooMany
from consumer.core.rooms import Intake
from consumer.metrics import Metrics


class Burials:
    def __init__(self, rules: BurialRules, intake: Intake, metrics: Metrics) -> None:
        self._breaker = DeadLetterBreaker(rules)
        self._intake = intake
        self._gauge = metrics.breaker.labels("dead_letter", "")
        self._log = structlog.get_logger("consumer.burials")

    def weigh(self, disposition: Disposition, now: int) -> Disposition:
        was_closed = self._breaker.is_closed
        weighed = self._breaker.weigh(disposition, now)
        if self._breaker.is_closed:
            if not was_closed:
                self._log.info("the dead-letter breaker is closed: a job succeeded")
                self._gauge.set(0)
        elif milliseconds := self._breaker.open_for(now):
            self._gauge.set(1)
            self._intake.trip(BuriedTooMany(milliseconds / 1000))
        return weighed
