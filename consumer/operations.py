"""One-off operations for commands: submit, find, cancel, declare."""

import os
import pwd
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from config.settings import Settings
from consumer.broker.connection import connect, explained
from consumer.broker.declare import Mode, faults
from consumer.broker.publisher import AmqpPublisher
from consumer.broker.session import open_session
from consumer.core import fields
from consumer.core.decode import MAX_KEY, MAX_KIND, decode
from consumer.core.errors import SettingsError
from consumer.core.job import Message, Refusal
from consumer.core.ports import Parcel, Store
from consumer.core.row import Row, Status
from consumer.core.sweep import PROPERTY_LIMIT, request
from consumer.wiring import broker_of, clock, rules_of, store_of, topology_of


async def submit(
    settings: Settings, kind: str, key: str, body: bytes, due: int | None = None, deadline: int | None = None
) -> Row:
    """Note the job as pending with its payload, then publish it; return what the store says of it.

    Not to be run before `due`, and not after `deadline` (epoch ms): the daemon that gets it puts it off.
    A job that the store knows already is published again only while it is pending (its message may be lost) or
    where it corrects a failed one.
    """
    _check_name(kind, key)
    if len(kind.encode()) > PROPERTY_LIMIT:
        raise SettingsError(
            f"the job can't be submitted: its kind has more than the {PROPERTY_LIMIT} bytes of a property"
        )
    wanted = Row(kind, key, Status.PENDING, payload=body, submitted_at=clock(), due_at=due, deadline=deadline)
    message = request(wanted)
    job = decode(message, rules_of(settings, "").decode)
    if isinstance(job, Refusal):
        raise SettingsError(f"the job can't be submitted ({job.code}): {job.detail}")
    async with closing_store(settings) as store:
        row = await store.submit(replace(wanted, fingerprint=job.fingerprint))
        if row.status is Status.CANCELLED:
            raise SettingsError(f"the job of kind '{kind}' with key '{key}' was cancelled for good: take another key")
        corrects = row.fingerprint != job.fingerprint
        if corrects and row.status is not Status.FAILED:
            raise SettingsError(f"key '{key}' belongs to another payload of kind '{kind}': take another key")
        if corrects or row.status is Status.PENDING:
            await _publish(settings, message)
    return row


async def _publish(settings: Settings, message: Message) -> None:
    topology = topology_of(settings)
    async with publishing(settings) as publisher:
        await publisher.publish(Parcel(topology.namespace, topology.queue, message, "submit"))


@asynccontextmanager
async def publishing(settings: Settings) -> AsyncIterator[AmqpPublisher]:
    """A publisher over a session of its own, with everything declared that it publishes to."""
    publisher = AmqpPublisher(settings.broker.publish_timeout_seconds)
    session = await open_session(broker_of(settings), topology_of(settings), Mode(settings.topology.mode), publisher)
    try:
        yield publisher
    finally:
        await session.close()


async def find(settings: Settings, kind: str, key: str) -> Row | None:
    async with closing_store(settings) as store:
        return await store.find(kind, key)


async def cancel(settings: Settings, kind: str, key: str) -> Row:
    """End a job for good, in the name of the user who runs this; return its row. One that has succeeded stays so."""
    _check_name(kind, key)
    async with closing_store(settings) as store:
        return await store.cancel(kind, key, who())


def _check_name(kind: str, key: str) -> None:
    for name, value, limit in (("kind", kind, MAX_KIND), ("key", key, MAX_KEY)):
        if flaw := fields.flaw(value or None, limit):
            raise SettingsError(f"no job can be called so: its {name} {flaw}")


def who() -> str:
    """The user who runs this, and where."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # as in a container that runs under a number
        user = f"user {os.getuid()}"
    return f"{user}@{socket.gethostname()}"


@asynccontextmanager
async def closing_store(settings: Settings) -> AsyncIterator[Store]:
    store = await store_of(settings)
    try:
        yield store
    finally:
        await store.close()


async def declare_topology(settings: Settings) -> list[str]:
    """Declare what is missing; return every way in which the broker differs from the settings, as sentences."""
    connection = await connect(broker_of(settings), "topology")
    try:
        with explained("the topology could not be declared"):
            return await faults(connection, topology_of(settings))
    finally:
        await connection.hang_up()
