"""The settings of a daemon that runs the jobs of tests/support/jobs."""

from tests.support.pools import JOBS

MODULES = "ordinary,results,observed,finals"
LEVELS = 8
"""A ladder that reaches 25 s: the whole one has ten queues more, which each test would declare and delete."""


def settings(broker: str, store: str, **more: str) -> dict[str, str]:
    """As environment variables without their prefix."""
    jobs = {
        "JOBS__MODULES": MODULES,
        "JOBS__PATH": str(JOBS),
        "POOL__PROCESSES": "2",
        "TOPOLOGY__DELAY_LEVELS": str(LEVELS),
    }
    return {"BROKER__URL": broker, "STORE__URL": store} | jobs | more
