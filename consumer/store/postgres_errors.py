"""What the driver's errors mean to us, and how they are told: never with a value, a password or a statement."""

import asyncpg

from consumer.core.errors import StoreRefused, StoreUnavailable
from consumer.unconnected import why_not

SESSION_LOST = ("08", "57P", "25006")
"""SQLSTATEs: connection trouble, the server going away, and a node that is read-only since a failover."""
REFUSED = ("28", "3D", "42")
"""SQLSTATEs that waiting doesn't cure: credentials, the database's name, privileges, unknown settings."""
UNFIT_DATA = ("22", "54")
"""SQLSTATEs that speak of one value, and not of the server: text or JSON that it can't read, a name too long for an
index. Not 23: a constraint that somebody added, or a missing partition, would hit every job."""

DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
"""The internal one is what the driver makes of a session that the server ended while it lay idle."""


def is_doubtful(error: BaseException) -> bool:
    """Whether the session can't be trusted any more."""
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "08").startswith(SESSION_LOST)
    return isinstance(error, DRIVER_ERRORS)


def is_refusal(error: BaseException | None) -> bool:
    return isinstance(error, asyncpg.PostgresError) and (error.sqlstate or "").startswith(REFUSED)


def forgets_statements(error: BaseException | None) -> bool:
    """Whether a session didn't know a statement that we prepared, or knew one of somebody else by its name."""
    return isinstance(error, asyncpg.InvalidSQLStatementNameError | asyncpg.DuplicatePreparedStatementError)


def trouble(where: str, error: Exception) -> StoreUnavailable | StoreRefused:
    if isinstance(error, asyncpg.PostgresError) and (error.sqlstate or "").startswith(UNFIT_DATA):
        # the driver's own text would quote the value
        return StoreRefused(f"the store at {where} can't hold this data: {type(error).__name__}")
    return StoreUnavailable(f"the store at {where} can't be used: {_describe(error)}")


def _describe(error: Exception) -> str:
    """Only the first line of what the server says: its details may quote rows."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return "none of its hosts takes writes now"
    if isinstance(error, asyncpg.InternalClientError):
        return "the session was ended"
    if forgets_statements(error):
        return "its sessions don't keep prepared statements, as behind pgbouncer: set prepared_statements = false"
    first_line = str(error.args[0] if error.args else "").partition("\n")[0]
    if isinstance(error, OSError):
        return why_not(error) or error.strerror or first_line or type(error).__name__
    return f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__
