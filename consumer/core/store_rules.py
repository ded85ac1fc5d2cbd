"""What is wrong with a database, judged by its settings."""

from collections.abc import Iterator, Mapping

from consumer.core.findings import Finding, Severity

HARM = {
    "synchronous_commit": "results that were acked can be lost when the database crashes",
    "fsync": "the whole database can be lost when its machine crashes",
}


def of_store(settings: Mapping[str, str]) -> Iterator[Finding]:
    for name, value in settings.items():
        if value == "off":
            yield Finding(Severity.WARNING, f"PostgreSQL, {name}", value, "on", f"turn it on: without it {HARM[name]}")
