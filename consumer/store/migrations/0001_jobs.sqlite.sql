-- One row per (kind, key). Times are epoch milliseconds of this machine's clock.
-- result and history are text, which SQLite keeps as it is: a json or numeric type would rewrite big numbers.
CREATE TABLE consumer_jobs (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    status TEXT NOT NULL CHECK (
        status IN ('pending', 'processing', 'retrying', 'succeeded', 'failed', 'cancelled')
    ),
    attempt INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    token INTEGER NOT NULL,
    owner TEXT,
    lease_until INTEGER,
    fingerprint BLOB NOT NULL,
    payload BLOB,
    result TEXT,
    error_code TEXT,
    error_type TEXT,
    error_message TEXT,
    error_traceback TEXT,
    history TEXT NOT NULL,
    submitted_at INTEGER,
    first_seen_at INTEGER,
    started_at INTEGER,
    finished_at INTEGER,
    due_at INTEGER,
    deadline INTEGER,
    cpu_seconds REAL NOT NULL,
    peak_memory INTEGER NOT NULL,
    PRIMARY KEY (kind, key)
);

-- Its one row is rewritten by every probe: proof that writes are taken now.
CREATE TABLE consumer_probe (
    id INTEGER PRIMARY KEY,
    probed_at INTEGER NOT NULL
);
