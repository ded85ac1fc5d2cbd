"""Structured logs on stderr: JSON lines, or colours for a person at a terminal. Lines are bounded."""

import logging
import sys
from typing import Any, Literal

import structlog
from structlog.typing import EventDict

VALUE_LIMIT = 2_000
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure(level: str, form: Literal["auto", "json", "console"]) -> None:
    """Set up structlog, and send what libraries log (warnings and worse) the same way."""
    as_json = form == "json" or (form == "auto" and not sys.stderr.isatty())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        bounded,
    ]
    renderer: Any = (
        structlog.processors.JSONRenderer(ensure_ascii=True)
        if as_json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name, _no_traceback],
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    # aiormq logs each lost connection with its traceback; the supervisor says the same in one line
    for noisy in ("aiormq", "aio_pika", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)


def bounded(_: Any, __: str, event: EventDict) -> EventDict:
    """Cut long strings, so that no payload or traceback makes a line of megabytes."""
    for name, value in event.items():
        if isinstance(value, str) and len(value) > VALUE_LIMIT:
            event[name] = value[:VALUE_LIMIT] + "…"
    return event


def _no_traceback(_: Any, __: str, event: EventDict) -> EventDict:
    event.pop("exc_info", None)
    return event
