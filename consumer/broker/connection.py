"""Opening a connection, and telling what went wrong in words that hold no secret."""

import asyncio
from dataclasses import dataclass

import aio_pika
from aio_pika.abc import AbstractConnection
from aio_pika.exceptions import AMQPError, AuthenticationError, ProbableAuthenticationError
from aiormq.abc import AbstractChannel
from pamqp import commands
from yarl import URL

from consumer.core.errors import BrokerRefused, BrokerUnavailable

CLIENT_ERRORS = (AMQPError, OSError, TimeoutError, RuntimeError, asyncio.CancelledError, StopAsyncIteration)
"""What aio-pika and aiormq raise when a connection or channel is away. aiormq ends calls that were under way
when a channel closed by cancelling them, which is not a cancellation of ours; and it says StopAsyncIteration
where a connection ends during its opening."""
NOT_ALLOWED = (403, 530)
"""Reply codes of a connection that is refused for its user, password or virtual host."""


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Seconds. `name` is shown in the broker's list of connections."""

    url: str
    name: str
    heartbeat: int = 30
    connect_timeout: float = 10.0
    publish_timeout: float = 10.0

    @property
    def place(self) -> str:
        """Host, port and vhost, for people."""
        url = URL(self.url)
        vhost = url.path.lstrip("/") or "/"
        return f"{url.host}:{url.port or (5671 if url.scheme == 'amqps' else 5672)}, vhost '{vhost}'"


async def connect(config: BrokerConfig, purpose: str) -> AbstractConnection:
    """Open one plain connection; raise BrokerUnavailable with one sentence that says why not."""
    url = URL(config.url).update_query(heartbeat=config.heartbeat, name=f"{config.name} {purpose}")
    try:
        return await aio_pika.connect(url, timeout=config.connect_timeout)
    except (AuthenticationError, ProbableAuthenticationError):
        raise BrokerRefused(f"the broker at {config.place} refused user or password: check broker.url") from None
    except (*CLIENT_ERRORS, ValueError) as error:
        if is_our_cancellation(error):
            raise
        close = next((arg for arg in error.args if isinstance(arg, commands.Connection.Close)), None)
        if close is not None and close.reply_code in NOT_ALLOWED:
            raise BrokerRefused(f"the broker at {config.place} refused us: {close.reply_text}") from None
        raise BrokerUnavailable(f"no connection to the broker at {config.place}: {reason(error)}") from None


async def open_channel(connection: AbstractConnection, *, confirms: bool = False) -> AbstractChannel:
    """Open a channel and return the one below aio-pika's: it hands out deliveries without a wrapper each.

    With `confirms`, a message that no queue takes comes back as the result of its publish.
    """
    channel = connection.channel(publisher_confirms=confirms, on_return_raises=False)
    await channel.initialize()
    return await channel.get_underlay_channel()


def reason(error: BaseException) -> str:
    """What a person can use of a client error; never the URL."""
    match error:
        case TimeoutError():
            return "it did not answer in time"
        case StopAsyncIteration():
            return "it closed the connection while it was being opened"
        case _:
            text = str(error.args[1] if len(error.args) > 1 and isinstance(error.args[0], int) else error)
            return " ".join(text.split())[:300] or type(error).__name__


def is_our_cancellation(error: BaseException) -> bool:
    """Whether our own task is being cancelled, as opposed to a call that the client gave up."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
