# ruff: noqa: S608 - every statement is built from the constants of this file
"""Dead letters as columns, and the questions about them as SQL that both databases read.

What differs is how a parameter is written: $1 in PostgreSQL, ?1 in SQLite.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from consumer.core.exact import headers_text, message_of, properties_text
from consumer.core.letter_index import Group, Wanted
from consumer.core.letters import Entry, Letter, State

TYPES = {
    "id": "text",
    "queue": "text",
    "kind": "text",
    "key": "text",
    "code": "text",
    "error_type": "text",
    "error_message": "text",
    "error_group": "text",
    "dead_at": "bigint",
    "first_failed_at": "bigint",
    "last_failed_at": "bigint",
    "attempts": "bigint",
    "generation": "bigint",
    "size": "bigint",
    "state": "text",
    "state_at": "bigint",
    "error_traceback": "text",
    "headers": "text",
    "properties": "text",
    "body": "bytea",
}
LISTED = tuple(TYPES)[:16]
"""The columns of an entry: bodies and headers may be large, and stay where they are."""

NEWEST_WORD = f"""
ON CONFLICT (id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in TYPES if name != "id")}
WHERE excluded.state_at > consumer_dead_letters.state_at
"""
PRUNED = "state <> 'dead' AND state_at <"


def to_columns(letter: Letter) -> tuple[Any, ...]:
    """Values in the order of TYPES."""
    return (
        letter.id,
        letter.queue,
        letter.kind,
        letter.key,
        letter.code,
        letter.error_type,
        letter.error_message,
        letter.group,
        letter.dead_at,
        letter.first_failed_at,
        letter.last_failed_at,
        letter.attempts,
        letter.generation,
        letter.size,
        letter.state.value,
        letter.state_at,
        letter.error_traceback,
        headers_text(letter.message),
        properties_text(letter.message),
        letter.message.body,
    )


def to_entry(record: Mapping[str, Any]) -> Entry:
    return Entry(**_facts(record))


def to_letter(record: Mapping[str, Any]) -> Letter:
    return Letter(
        **_facts(record),
        error_traceback=record["error_traceback"],
        message=message_of(record["body"], record["headers"], record["properties"]),
    )


def to_group(record: Mapping[str, Any]) -> Group:
    return Group(record["count"], record["first_at"], record["last_at"], to_entry(record))


def _facts(record: Mapping[str, Any]) -> dict[str, Any]:
    facts = {name: record[name] for name in LISTED}
    return facts | {"group": facts.pop("error_group"), "state": State(record["state"])}


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    parameters: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Dialect:
    """`mark` begins a numbered parameter; `one_of` compares with a parameter that holds ids."""

    mark: str
    one_of: str

    def page(self, wanted: Wanted, limit: int, after: str | None, *, oldest_first: bool) -> Query:
        conditions, values = self._conditions(wanted)
        way, beyond = ("", ">") if oldest_first else (" DESC", "<")
        if after is not None:
            values.append(after)
            place = f"SELECT dead_at, id FROM consumer_dead_letters WHERE id = {self._last(values)}"
            conditions.append(f"(dead_at, id) {beyond} ({place})")
        values.append(limit)
        return Query(
            f"SELECT {', '.join(LISTED)} FROM consumer_dead_letters WHERE {' AND '.join(conditions)} "
            f"ORDER BY dead_at{way}, id{way} LIMIT {self._last(values)}",
            tuple(values),
        )

    def groups(self, wanted: Wanted, limit: int) -> Query:
        conditions, values = self._conditions(wanted)
        values.append(limit)
        numbered = f"""
            SELECT {", ".join(LISTED)}, count(*) OVER same AS count,
                   min(dead_at) OVER same AS first_at, max(dead_at) OVER same AS last_at,
                   row_number() OVER (PARTITION BY error_group ORDER BY dead_at DESC, id DESC) AS place
            FROM consumer_dead_letters WHERE {" AND ".join(conditions)}
            WINDOW same AS (PARTITION BY error_group)
        """
        return Query(
            f"SELECT * FROM ({numbered}) AS numbered WHERE place = 1 "
            f"ORDER BY count DESC, last_at DESC, id LIMIT {self._last(values)}",
            tuple(values),
        )

    def count(self, wanted: Wanted) -> Query:
        conditions, values = self._conditions(wanted)
        return Query(f"SELECT count(*) FROM consumer_dead_letters WHERE {' AND '.join(conditions)}", tuple(values))

    def letters(self, ids: Collection[str]) -> Query:
        one_of = self.one_of.format(f"{self.mark}1")
        return Query(f"SELECT * FROM consumer_dead_letters WHERE id {one_of} ORDER BY dead_at, id", (list(ids),))

    def _conditions(self, wanted: Wanted) -> tuple[list[str], list[Any]]:
        """What `Wanted.matches` says of one entry."""
        tests: Iterable[tuple[str, Any]] = (
            ("queue =", wanted.queue),
            ("state =", wanted.state.value),
            ("code =", wanted.code),
            ("kind =", wanted.kind),
            ("key =", wanted.key),
            ("error_type =", wanted.error_type),
            ("error_group =", wanted.group),
            ("dead_at >=", wanted.since),
            ("dead_at <", wanted.until),
            ("generation <=", wanted.redriven),
        )
        conditions: list[str] = []
        values: list[Any] = []
        for test, value in tests:
            if value is not None:
                values.append(value)
                conditions.append(f"{test} {self._last(values)}")
        if wanted.ids is not None:
            values.append(sorted(wanted.ids))
            conditions.append(f"id {self.one_of.format(self._last(values))}")
        return conditions, values

    def _last(self, values: list[Any]) -> str:
        return f"{self.mark}{len(values)}"
