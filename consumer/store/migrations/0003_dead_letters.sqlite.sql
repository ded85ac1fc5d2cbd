-- An index of the dead-letter queue, for people: the queue is what is sent back to work. Times are epoch milliseconds.
-- What is listed comes first, what is opened one by one comes last. A tagged text holds any header exactly.
CREATE TABLE consumer_dead_letters (
    id TEXT NOT NULL PRIMARY KEY,
    queue TEXT NOT NULL,
    kind TEXT,
    key TEXT,
    code TEXT NOT NULL,
    error_type TEXT NOT NULL,
    error_message TEXT NOT NULL,
    error_group TEXT NOT NULL,
    dead_at INTEGER NOT NULL,
    first_failed_at INTEGER NOT NULL,
    last_failed_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    size INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('dead', 'redriven', 'edited', 'purged', 'missing')),
    state_at INTEGER NOT NULL,
    error_traceback TEXT NOT NULL,
    headers TEXT NOT NULL,
    properties TEXT NOT NULL,
    body BLOB NOT NULL
);

CREATE INDEX consumer_dead_letters_listed ON consumer_dead_letters (queue, state, dead_at, id);

CREATE INDEX consumer_dead_letters_gone ON consumer_dead_letters (state_at) WHERE state <> 'dead';
