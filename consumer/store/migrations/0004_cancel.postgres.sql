-- What a run says of itself while it runs.
ALTER TABLE consumer_jobs ADD COLUMN progress double precision;
ALTER TABLE consumer_jobs ADD COLUMN progress_note text NOT NULL DEFAULT '';

-- Follow-up jobs that are not published yet: written with the result that asks for them, deleted once they are on the
-- broker. origin is the work queue whose daemons publish them. From take_at on one of these may take it for sending.
CREATE TABLE consumer_outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    origin text NOT NULL,
    kind text NOT NULL,
    key text NOT NULL,
    payload bytea NOT NULL,
    queue text,
    due bigint,
    traceparent text,
    deadline bigint,
    submitted_at bigint NOT NULL,
    take_at bigint NOT NULL,
    tries integer NOT NULL DEFAULT 0
);

CREATE INDEX consumer_outbox_take ON consumer_outbox (origin, take_at);

-- Kinds that wait because what they need is down.
CREATE TABLE consumer_cooldowns (
    kind text PRIMARY KEY,
    until bigint NOT NULL,
    why text NOT NULL
);
