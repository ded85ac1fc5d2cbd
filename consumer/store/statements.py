# ruff: noqa: S608 - every statement is built from the constants of this file
"""The SQL of the PostgreSQL store, prepared once per session.

Two rules shape it. Rows are locked in the order of (kind, key), so that no two sessions can wait for each
other. And rows are reached one by one through the primary key (LATERAL, ON CONFLICT), never by a join that
the planner may turn into a scan: a plan made while the table was empty would scan it for as long as a minute
of full load.
"""

from consumer.store import conditions
from consumer.store.columns import COLUMNS, TYPES
from consumer.store.cooldowns_sql import cool, warm

NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_TYPES = TYPES | {"lease": "bigint"}
"""The parameters of statements: columns, and how long a claim is to hold."""
_ROW = ", ".join(COLUMNS)

STATE = tuple(name for name in COLUMNS if name not in {"payload", "result", "submitted_at", "first_seen_at"})
"""The columns that a decision reads or writes: results and payloads may be large, and stay where they are."""


def _batch(*names: str) -> str:
    """The parameters, one array a column, as the table `n` in the order of locking."""
    arrays = ", ".join(f"${place}::{_TYPES[name]}[]" for place, name in enumerate(names, 1))
    return f"""(
        SELECT * FROM unnest({arrays}) AS u ({", ".join(names)})
        ORDER BY u.kind COLLATE "C", u.key COLLATE "C"
    ) AS n"""


def _held(*names: str, condition: str = "AND j.status = 'processing'") -> str:
    """Those of the batch whose token still holds, locked. An upsert of them always finds its row."""
    return f"""
    WITH held AS MATERIALIZED (
        SELECT n.* FROM {_batch("kind", "key", "token", *names)} CROSS JOIN LATERAL (
            SELECT 1 FROM consumer_jobs AS j
            WHERE j.kind = n.kind AND j.key = n.key AND j.token = n.token {condition}
            FOR NO KEY UPDATE
        ) AS locked
    )"""


CLAIM_FRESH_PARAMETERS = (
    "kind",
    "key",
    "attempt",
    "generation",
    "owner",
    "lease",
    "fingerprint",
    "submitted_at",
    "deadline",
)
CLAIM_FRESH = f"""
INSERT INTO consumer_jobs (kind, key, status, token, attempt, generation, owner, lease_until, fingerprint,
                           submitted_at, first_seen_at, started_at, deadline)
SELECT n.kind, n.key, 'processing', 1, n.attempt, n.generation, n.owner, clock.now + n.lease, n.fingerprint,
       n.submitted_at, clock.now, clock.now, n.deadline
FROM {_batch(*CLAIM_FRESH_PARAMETERS)} CROSS JOIN (SELECT {NOW} AS now) AS clock
ON CONFLICT DO NOTHING
RETURNING kind, key
"""
"""What `core.claim.decide` writes where there is no row; a test compares the two."""

LOCK = f"""
SELECT {NOW} AS now, NULL AS payload, NULL AS result, NULL AS submitted_at, NULL AS first_seen_at, locked.*
FROM {_batch("kind", "key")} CROSS JOIN LATERAL (
    SELECT {", ".join(STATE)} FROM consumer_jobs AS j
    WHERE j.kind = n.kind AND j.key = n.key
    FOR NO KEY UPDATE
) AS locked
"""

SAVE = f"""
INSERT INTO consumer_jobs ({", ".join(STATE)}) SELECT {", ".join(STATE)} FROM {_batch(*STATE)}
ON CONFLICT (kind, key) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in STATE[2:])}
"""

COMPLETE = f"""
{_held("result", "started_at", "finished_at", "cpu_seconds", "peak_memory")}
INSERT INTO consumer_jobs AS j
      (kind, key, status, token, result, started_at, finished_at, cpu_seconds, peak_memory)
SELECT kind, key, 'succeeded', token, result, started_at, coalesce(finished_at, {NOW}), cpu_seconds, peak_memory
FROM held
ON CONFLICT (kind, key) DO UPDATE SET
    status = excluded.status, result = excluded.result, lease_until = NULL,
    error_code = NULL, error_type = NULL, error_message = NULL, error_traceback = NULL,
    started_at = coalesce(excluded.started_at, j.started_at), finished_at = excluded.finished_at,
    cpu_seconds = excluded.cpu_seconds, peak_memory = excluded.peak_memory
RETURNING kind, key
"""
"""What `store.change.apply` writes for a result; a test compares the two."""

RENEW = f"""
{_held()}
INSERT INTO consumer_jobs (kind, key, status, token, lease_until)
SELECT kind, key, 'processing', token, {NOW} + $4::bigint FROM held
ON CONFLICT (kind, key) DO UPDATE SET lease_until = excluded.lease_until
RETURNING kind, key, token
"""

PROGRESS = f"""
{_held("progress", "progress_note")}
INSERT INTO consumer_jobs (kind, key, status, token, progress, progress_note)
SELECT kind, key, 'processing', token, progress, progress_note FROM held
ON CONFLICT (kind, key) DO UPDATE SET progress = excluded.progress, progress_note = excluded.progress_note
"""

CANCELLED = f"""
SELECT n.kind, n.key, n.token FROM {_batch("kind", "key", "token")} CROSS JOIN LATERAL (
    SELECT 1 FROM consumer_jobs AS j WHERE j.kind = n.kind AND j.key = n.key AND j.status = 'cancelled'
) AS cancelled
"""

FIND = f"SELECT {_ROW} FROM consumer_jobs WHERE kind = $1 AND key = $2"

SUBMIT_PARAMETERS = tuple(name for name in COLUMNS if name != "first_seen_at")
SUBMIT = f"""
INSERT INTO consumer_jobs (first_seen_at, {", ".join(SUBMIT_PARAMETERS)})
VALUES ({NOW}, {", ".join(f"${place}" for place in range(1, len(COLUMNS)))})
ON CONFLICT DO NOTHING
RETURNING {_ROW}
"""

_NOW_ONCE = f"(SELECT {NOW})"
"""A clock read once a statement, which an index can be searched with."""
_IN_TURN = "(SELECT pg_try_advisory_xact_lock($1))"
"""Of several replicas that sweep at the same moment all but one find nothing to do."""
SWEEP_LOCK = int.from_bytes(b"sweeping")

STUCK = f"""
SELECT status, count(*) AS count FROM (
    SELECT status FROM consumer_jobs WHERE {conditions.stuck(f"{_NOW_ONCE} - $1::bigint")} LIMIT {conditions.COUNTED}
) AS stuck GROUP BY status
"""

OVERDUE = f"""
SELECT {_ROW} FROM consumer_jobs
WHERE {_IN_TURN} AND kind = ANY ($2::text[]) AND {conditions.overdue(f"{_NOW_ONCE} - $3::bigint", _NOW_ONCE)}
ORDER BY {conditions.SINCE} LIMIT $4
"""

SWEPT = f"""
{_held(condition="")}
INSERT INTO consumer_jobs (kind, key, status, token, swept_at)
SELECT kind, key, 'pending', token, {NOW} FROM held
ON CONFLICT (kind, key) DO UPDATE SET swept_at = excluded.swept_at
"""

PRUNE = f"""
WITH pruned AS (
    DELETE FROM consumer_jobs WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM consumer_jobs
        WHERE {_IN_TURN} AND {conditions.forgettable(f"{_NOW_ONCE} - $2::bigint")}
        ORDER BY finished_at LIMIT $3
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING 1
)
SELECT count(*) FROM pruned
"""

COOL, WARM = cool("$"), warm("$")

PROBE = f"""
INSERT INTO consumer_probe (id, probed_at) VALUES (1, {NOW})
ON CONFLICT (id) DO UPDATE SET probed_at = excluded.probed_at
"""
