"""A RabbitMQ consumer daemon. What a module of jobs needs is here; everything else has its own room."""

from consumer.worker.context import JobContext
from consumer.worker.handler import DependencyDown, JobTimeout, Reject, Retry, job

__all__ = ["DependencyDown", "JobContext", "JobTimeout", "Reject", "Retry", "job"]
