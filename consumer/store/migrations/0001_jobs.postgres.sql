-- One row per (kind, key). Times are epoch milliseconds of this server's clock.
-- json, not jsonb: results keep their text exactly, NUL escapes and big numbers included.
-- The collation makes every session lock keys in the same order, whatever the database's locale.
-- The free space keeps a row's few updates on its own page, where they touch no index.
CREATE TABLE consumer_jobs (
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    status text NOT NULL CHECK (
        status IN ('pending', 'processing', 'retrying', 'succeeded', 'failed', 'cancelled')
    ),
    attempt integer NOT NULL DEFAULT 1,
    generation integer NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    token bigint NOT NULL,
    owner text,
    lease_until bigint,
    fingerprint bytea NOT NULL DEFAULT '',
    payload bytea,
    result json,
    error_code text,
    error_type text,
    error_message text,
    error_traceback text,
    history json NOT NULL DEFAULT '[]',
    submitted_at bigint,
    first_seen_at bigint,
    started_at bigint,
    finished_at bigint,
    due_at bigint,
    deadline bigint,
    cpu_seconds double precision NOT NULL DEFAULT 0,
    peak_memory bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, key)
) WITH (fillfactor = 70);

-- Its one row is rewritten by every probe: proof that writes are taken now.
CREATE TABLE consumer_probe (
    id integer PRIMARY KEY,
    probed_at bigint NOT NULL
);
