"""Opening a connection, and telling what went wrong in words that hold no secret."""

import asyncio
import ssl
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from aio_pika.abc import AbstractConnection
from aio_pika.exceptions import AMQPError, AuthenticationError, ProbableAuthenticationError
from aiormq.abc import AbstractChannel
from aiormq.exceptions import InvalidFrameError
from pamqp import commands
from yarl import URL

from consumer.broker.endpoints import Login, logged_in, shown
from consumer.broker.line import CLOSE_TIMEOUT, Line
from consumer.core.errors import BrokerRefused, BrokerUnavailable
from consumer.unconnected import why_not

CLIENT_ERRORS = (AMQPError, OSError, TimeoutError, RuntimeError, asyncio.CancelledError, StopAsyncIteration)
"""What aio-pika and aiormq raise when a connection or channel is away. aiormq ends calls that were under way
when a channel closed by cancelling them, which is not a cancellation of ours; and it says StopAsyncIteration
where a connection ends during its opening."""
ANSWER = 15.0
"""Seconds that the broker gets for each step: an open connection says little about who answers on it."""
NOT_ALLOWED = 530
"""Reply code for a user who may not open a virtual host, or one that isn't there."""


@dataclass(frozen=True, slots=True)
class Files:
    """Paths, read again at each connect, so that a rotation needs no restart. Empty: there is none."""

    user: str = ""
    password: str = ""
    ca: str = ""
    cert: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Seconds. `name` is shown in the broker's list of connections, `others` are further nodes of the same broker."""

    url: str = field(repr=False)
    name: str
    files: Files = Files()
    others: tuple[str, ...] = field(default=(), repr=False)
    heartbeat: int = 30
    connect_timeout: float = 10.0

    @property
    def place(self) -> str:
        """Host, port and vhost, for people."""
        return shown(self.url)

    @property
    def nodes(self) -> tuple["BrokerConfig", ...]:
        """Each node by itself."""
        return tuple(replace(self, url=url, others=()) for url in (self.url, *self.others))


async def connect(config: BrokerConfig, purpose: str) -> Line:
    """Open one plain connection to the first node that lets us in; raise what the last one said where none does."""
    *nodes, last = config.nodes
    for node in nodes:
        try:
            return await _connect(node, purpose)
        except BrokerUnavailable:
            continue
    return await _connect(last, purpose)


async def _connect(config: BrokerConfig, purpose: str) -> Line:
    """Raise BrokerUnavailable with one sentence that says why not."""
    url = URL(with_login(config), encoded=True)
    url = url.update_query(heartbeat=config.heartbeat, name=f"{config.name} {purpose}")
    context = await asyncio.to_thread(trust, config.files) if url.scheme == "amqps" else None
    line = Line(url, ssl_context=context)
    try:
        with reasoned():
            await line.connect(timeout=config.connect_timeout)
    except (AuthenticationError, ProbableAuthenticationError):
        raise BrokerRefused(
            f"the broker at {config.place} refused user or password: check broker.url and what is set beside it"
        ) from None
    except (*CLIENT_ERRORS, ValueError) as error:
        if is_our_cancellation(error):
            raise
        close = _close_in(error)
        if close is not None and close.reply_code == NOT_ALLOWED and "limit" not in close.reply_text:
            raise BrokerRefused(f"the broker at {config.place} doesn't let this user in: {close.reply_text}") from None
        raise BrokerUnavailable(
            f"no connection to the broker at {config.place}: {close.reply_text if close else reason(error)}"
        ) from None
    return line


def _close_in(error: BaseException) -> commands.Connection.Close | None:
    """The close with which the broker answered the opening of a virtual host: aiormq raises without it.

    It tells who may never enter from who has to wait until the node has booted.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if isinstance(found := frame.f_locals.get("frame"), commands.Connection.Close):
            return found
    return None


def with_login(config: BrokerConfig) -> str:
    """The URL with what the files say now."""
    login = Login(_line_of("user_file", config.files.user), _line_of("password_file", config.files.password))
    return logged_in(config.url, login)


def _line_of(setting: str, path: str) -> str:
    """What a file holds, without the newline that editors put at its end; empty where there is no file."""
    if not path:
        return ""
    try:
        return Path(path).read_text().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BrokerRefused(f"broker.{setting} can't be read: {path}: {_why(error)}") from None


def trust(files: Files) -> ssl.SSLContext:
    """Whom to trust, and who we are. The name of the host is always verified."""
    try:
        context = ssl.create_default_context(cafile=files.ca or None)
        if files.cert:
            # a key that needs a password is refused: the library would ask whoever sits at the terminal
            context.load_cert_chain(files.cert, files.key or None, password="")
    except OSError as error:
        named = ", ".join(filter(None, (files.ca, files.cert, files.key)))
        raise BrokerRefused(f"broker.ca_file, cert_file or key_file can't be used: {named}: {_why(error)}") from None
    return context


def _why(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "it is not text"


async def open_channel(connection: AbstractConnection, *, confirms: bool = False) -> AbstractChannel:
    """Open a channel and return the one below aio-pika's: it hands out deliveries without a wrapper each.

    With `confirms`, a message that no queue takes comes back as the result of its publish. Raises CLIENT_ERRORS.
    """
    channel = connection.channel(publisher_confirms=confirms, on_return_raises=False)
    # not by the client's own timeout: it waits for as long as an alarm blocks the connection
    async with asyncio.timeout(ANSWER):
        await channel.initialize()
        return await channel.get_underlay_channel()


async def close_channel(channel: AbstractChannel) -> None:
    """Its handshake says that the broker has heard all that went before. Raises nothing but our own cancellation."""
    try:
        if not channel.is_closed:
            with reasoned():
                await asyncio.wait_for(channel.close(), CLOSE_TIMEOUT)
    except CLIENT_ERRORS as error:
        if is_our_cancellation(error):
            raise


@contextmanager
def reasoned() -> Iterator[None]:
    """aiormq raises a bare Exception where a connection was closed and nobody said why: let it leave as one of
    CLIENT_ERRORS, and what is a bug of ours as it is."""
    try:
        yield
    except Exception as error:
        if type(error) is not Exception:
            raise
        raise ConnectionError("the connection was closed") from None


@contextmanager
def explained(failed: str) -> Iterator[None]:
    """Let what the client raises leave as BrokerUnavailable, in one sentence that begins with `failed`."""
    try:
        with reasoned():
            yield
    except CLIENT_ERRORS as error:
        if is_our_cancellation(error):
            raise
        raise BrokerUnavailable(f"{failed}: {reason(error)}") from None


def is_undecodable(error: BaseException | None) -> bool:
    """Whether the client gave up over what the broker sent. What it says of a lost connection are AMQP errors."""
    return isinstance(error, InvalidFrameError) or (
        isinstance(error, Exception) and not isinstance(error, AMQPError | OSError | StopAsyncIteration)
    )


def reason(error: BaseException) -> str:
    """What a person can use of a client error; never the URL."""
    match error:
        case TimeoutError():
            return "it did not answer in time"
        case OSError() if why := why_not(error):
            return why
        case StopAsyncIteration():
            return "it closed the connection while it was being opened"
        case _:
            text = str(error.args[1] if len(error.args) > 1 and isinstance(error.args[0], int) else error)
            return " ".join(text.split())[:300] or type(error).__name__


def is_our_cancellation(error: BaseException) -> bool:
    """Whether our own task is being cancelled, as opposed to a call that the client gave up."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
