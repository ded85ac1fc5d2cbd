-- What a run says of itself while it runs.
ALTER TABLE consumer_jobs ADD COLUMN progress REAL;
ALTER TABLE consumer_jobs ADD COLUMN progress_note TEXT NOT NULL DEFAULT '';

-- Follow-up jobs that are not published yet: written with the result that asks for them, deleted once they are on the
-- broker. origin is the work queue whose daemons publish them. From take_at on one of these may take it for sending.
CREATE TABLE consumer_outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    origin TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    payload BLOB NOT NULL,
    queue TEXT,
    due INTEGER,
    traceparent TEXT,
    deadline INTEGER,
    submitted_at INTEGER NOT NULL,
    take_at INTEGER NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX consumer_outbox_take ON consumer_outbox (origin, take_at);

-- Kinds that wait because what they need is down.
CREATE TABLE consumer_cooldowns (
    kind TEXT PRIMARY KEY,
    until INTEGER NOT NULL,
    why TEXT NOT NULL
);
