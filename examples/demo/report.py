"""The table at the end: what became of the jobs, what lies in the dead-letter queue, how fast it went."""

import json
from collections import Counter
from dataclasses import dataclass
from statistics import quantiles
from typing import Any

from aio_pika.abc import AbstractIncomingMessage
from rich.console import Console
from rich.markup import escape
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Figures:
    published: int
    seconds: float
    settled: list[dict[str, Any]]
    dead: list[AbstractIncomingMessage]


def show(console: Console, figures: Figures) -> None:
    console.print(_dispositions(figures))
    console.print(_dead_letters(figures))
    waits = [line["in_hand_ms"] for line in figures.settled if line["disposition"] == "complete"]
    median, slow = quantiles(waits, n=20)[9], quantiles(waits, n=20)[18]
    jobs = len(figures.settled)
    console.print(
        f"{figures.published} messages published, {jobs} deliveries settled in {figures.seconds:.1f} s "
        f"({jobs / figures.seconds:.0f}/s; retries and their waits included)\n"
        f"from delivery to ack: p50 {median:.0f} ms, p95 {slow:.0f} ms"
    )


def _dispositions(figures: Figures) -> Table:
    table = Table("what was done", "deliveries", "which means")
    meanings = {
        "complete": "the result is stored, then acked",
        "duplicate": "the effect was there already: acked, not run again",
        "retry": "a copy waits in the broker's delay queues",
        "dead_letter": "kept in the dead-letter queue, with its reason",
        "defer": "put off without a charge (here: a kind that nobody knows, yet)",
    }
    counts = Counter(line["disposition"] for line in figures.settled)
    for disposition, meaning in meanings.items():
        table.add_row(disposition, str(counts[disposition]), meaning)
    return table


def _dead_letters(figures: Figures) -> Table:
    table = Table("dead letter", "count", "an example", "body, byte for byte")
    by_code: dict[str, list[AbstractIncomingMessage]] = {}
    for message in figures.dead:
        by_code.setdefault(str(message.headers["consumer-code"]), []).append(message)
    for code, messages in sorted(by_code.items()):
        example = messages[0]
        said = str(example.headers["consumer-error-message"])
        attempts = len(json.loads(str(example.headers["consumer-history"])))
        tried = f" ({attempts} attempts)" if attempts > 1 else ""
        body = _cut(example.body.decode(errors="replace"), 24)
        table.add_row(code, str(len(messages)), escape(_cut(said, 60)) + tried, escape(body))
    return table


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"
