"""Structured logs on stderr: JSON lines, or colours for a person at a terminal. Lines are bounded."""

import json
import logging
import re
import sys
import time
from functools import lru_cache
from typing import Any, Literal

import structlog
from structlog.typing import EventDict

VALUE_LIMIT = 2_000
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure(level: str, form: Literal["auto", "json", "console"]) -> None:
    """Set up structlog, and send what libraries log (warnings and worse) the same way."""
    as_json = form == "json" or (form == "auto" and not sys.stderr.isatty())
    shared: list[Any] = [
        structlog.processors.add_log_level,
        timestamped,
        structlog.processors.format_exc_info,
        bounded,
    ]
    if not as_json:
        shared.append(escaped)
    renderer: Any = _json_line if as_json else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
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


def timestamped(_: Any, __: str, event: EventDict) -> EventDict:
    """UTC to the millisecond."""
    now = time.time()
    second = int(now)
    event["timestamp"] = f"{_to_the_second(second)}.{int((now - second) * 1000):03d}Z"
    return event


@lru_cache(maxsize=2)
def _to_the_second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


_encode = json.JSONEncoder(default=str).encode


def _json_line(_: Any, __: str, event: EventDict) -> str:
    """One encoder for all lines: structlog's renderer makes one for each, at a tenth of what a job costs us."""
    return _encode(event)


def bounded(_: Any, __: str, event: EventDict) -> EventDict:
    """Cut long strings, so that no payload or traceback makes a line of megabytes."""
    for name, value in event.items():
        if isinstance(value, str) and len(value) > VALUE_LIMIT:
            event[name] = value[:VALUE_LIMIT] + "…"
    return event


def escaped(_: Any, __: str, event: EventDict) -> EventDict:
    """What a job prints must not drive the terminal of whoever watches. JSON escapes by itself."""
    for name, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[name] = _CONTROLS.sub(lambda found: repr(found.group())[1:-1], value)
    return event


def _no_traceback(_: Any, __: str, event: EventDict) -> EventDict:
    event.pop("exc_info", None)
    return event
