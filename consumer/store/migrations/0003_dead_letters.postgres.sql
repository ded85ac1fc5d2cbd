-- An index of the dead-letter queue, for people: the queue is what is sent back to work. Times are epoch milliseconds.
-- What is listed comes first, what is opened one by one comes last. A tagged text holds any header exactly.
CREATE TABLE consumer_dead_letters (
    id text COLLATE "C" PRIMARY KEY,
    queue text NOT NULL,
    kind text,
    key text,
    code text NOT NULL,
    error_type text NOT NULL,
    error_message text NOT NULL,
    error_group text NOT NULL,
    dead_at bigint NOT NULL,
    first_failed_at bigint NOT NULL,
    last_failed_at bigint NOT NULL,
    attempts bigint NOT NULL,
    generation bigint NOT NULL,
    size bigint NOT NULL,
    state text NOT NULL CHECK (state IN ('dead', 'redriven', 'edited', 'purged', 'missing')),
    state_at bigint NOT NULL,
    error_traceback text NOT NULL,
    headers text NOT NULL,
    properties text NOT NULL,
    body bytea NOT NULL
);

CREATE INDEX consumer_dead_letters_listed ON consumer_dead_letters (queue, state, dead_at, id);

CREATE INDEX consumer_dead_letters_gone ON consumer_dead_letters (state_at) WHERE state <> 'dead';
