"""The names of every AMQP header that crosses the boundary, and who writes it.

Times are integers: milliseconds since the Unix epoch, UTC.
"""

# written by producers
SUBMITTED_AT = "submitted-at-ms"
DEADLINE = "deadline-ms"
NOT_BEFORE = "not-before-ms"
IDEMPOTENCY_KEY = "idempotency-key"
TRACEPARENT = "traceparent"

CLOUDEVENTS_PREFIX = "cloudEvents:"
CLOUDEVENTS_PREFIX_ALT = "cloudEvents_"
"""Both prefixes that the AMQP binding of CloudEvents allows."""

# written by the daemon onto the copies that it publishes
ATTEMPT = "consumer-attempt"
"""The attempt that this copy is for; 1 where it is absent."""
GENERATION = "consumer-generation"
"""How often the job was redriven from the dead-letter queue; 0 where it is absent."""
DUE = "consumer-due-ms"
"""Not to be run before this time."""
UNKNOWN_SINCE = "consumer-unknown-since-ms"
"""When it first met daemons that don't know its kind; the grace for unknown kinds counts from here."""
SINCE = "consumer-since-ms"
"""When the first attempt began, since the job was submitted or redriven; the budget of its kind counts from here."""
ORIGIN = "consumer-origin-queue"
FIRST_FAILED = "consumer-first-failed-ms"
HISTORY = "consumer-history"
"""JSON: a list of at most 20 objects {attempt, at, code, error, pod}, oldest first."""
CODE = "consumer-code"
ERROR_TYPE = "consumer-error-type"
ERROR_MESSAGE = "consumer-error-message"
ERROR_TRACEBACK = "consumer-error-traceback"
DEAD_AT = "consumer-dead-ms"
DEAD_ID = "consumer-dead-id"
"""Names the letter in `consumer dead`; 20 hexadecimal digits."""
DROPPED = "consumer-dropped-headers"
"""Names of headers that were given up because all of them together would not fit into a frame."""
ANONYMOUS = "consumer-anonymous"
"""True on copies of messages that had no message_id: the client library makes one up."""

OURS_PREFIX = "consumer-"
