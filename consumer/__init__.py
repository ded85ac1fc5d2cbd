"""A RabbitMQ consumer daemon. What a module of jobs needs is here; everything else has its own room."""

from consumer.worker.handler import JobContext, Reject, Retry, job

__all__ = ["JobContext", "Reject", "Retry", "job"]
