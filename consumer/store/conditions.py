"""Which rows the sweeper means, as SQL that both databases read: what `core.sweep` says of one row.

The indexes of migration 0002 have the same words, so that a sweep reads what it finds and no more.
"""

LIVE = "status IN ('pending', 'processing', 'retrying')"
SINCE = "(CASE status WHEN 'processing' THEN lease_until ELSE coalesce(due_at, first_seen_at) END)"

COUNTED = 10_000
"""Stuck rows beyond these are not counted: by then the number says nothing more."""


def stuck(latest: str) -> str:
    """Rows that wait since before `latest`."""
    return f"{LIVE} AND {SINCE} < {latest}"


def forgettable(latest: str) -> str:
    """Rows that are done since before `latest`, by the index of what is done."""
    done = "status IN ('succeeded', 'failed', 'cancelled')"
    return f"{done} AND finished_at < {latest} AND (due_at IS NULL OR due_at < {latest})"


def unsent(now: str) -> str:
    """Follow-ups that were to be sent before; another one waits in the outbox for its time."""
    return f"(tries > 0 OR take_at <= {now})"


def overdue(latest: str, now: str) -> str:
    """Those that are to be published now, as far as their payload is here."""
    return f"{stuck(latest)} AND payload IS NOT NULL AND (swept_at IS NULL OR {now} - swept_at >= swept_at - {SINCE})"
