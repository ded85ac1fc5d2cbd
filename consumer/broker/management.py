"""Looks at a broker through the HTTP API of its management plugin, which shows what AMQP doesn't."""

import asyncio
import json
import ssl
from base64 import b64encode
from collections.abc import Mapping
from http.client import HTTPException
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener

from consumer.broker.connection import BrokerConfig, reason, trust, with_login
from consumer.core.errors import BrokerUnavailable
from consumer.core.facts import Managed, Policy, QueueState
from consumer.core.topology import Binding, Topology

MOST_BYTES = 64 * 1024 * 1024
OK, NOT_FOUND, IN_ALARM = 200, 404, 503
NOT_ALLOWED = (401, 403)
POLICIES = {"policies": ("policy", "policy"), "operator-policies": ("operator_policy", "operator policy")}
"""By path: the member of a queue that names the one in force, and what to call it."""
STREAMS = "stream_queue"
"""The feature flag without which dead-lettering is at most once. Newer brokers can't be without it."""


async def manage(config: BrokerConfig, url: str, topology: Topology) -> Managed:
    """Raise BrokerUnavailable, in one sentence, where it can't be seen."""
    return await asyncio.to_thread(_manage, config, url, topology)


def _manage(config: BrokerConfig, url: str, topology: Topology) -> Managed:
    api = _Api(config, url)
    try:
        policies = {path: _policies(api, path) for path in POLICIES}
        states = (_queue(api, queue.name, policies) for queue in topology.queues)
        return Managed(
            queues=tuple(state for state in states if state is not None),
            bindings=_bindings(api),
            alarms=_alarms(api),
            at_least_once=_at_least_once(api),
        )
    except (KeyError, TypeError, AttributeError):
        raise api.unavailable("its answer is not that of RabbitMQ's management plugin") from None


class _NoWayElsewhere(HTTPRedirectHandler):
    """Whoever answers must not be able to send our password to another place."""

    def redirect_request(self, *_: object) -> None:
        return None


class _Api:
    def __init__(self, config: BrokerConfig, url: str) -> None:
        parts = urlsplit(with_login(config))
        user, password = unquote(parts.username or "guest"), unquote(parts.password or "guest")
        self.vhost = _quoted(unquote(parts.path.removeprefix("/")) or "/")
        self._base = f"{url.rstrip('/')}/api"
        self._place = urlsplit(url).netloc
        self._login = f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"
        self._timeout = config.connect_timeout
        self._opener = _opener(trust(config.files) if url.startswith("https:") else None)

    def ask(self, path: str, *expected: int) -> tuple[int, Any]:
        """Return status and JSON; any status but 200 and those that are expected is an error."""
        try:
            return self._read(path, expected)
        except URLError as error:
            why = error.reason
            raise self.unavailable(reason(why) if isinstance(why, BaseException) else why) from None
        except (OSError, HTTPException) as error:
            raise self.unavailable(reason(error)) from None
        except ValueError:
            raise self.unavailable("its answer is no JSON") from None

    def _read(self, path: str, expected: tuple[int, ...]) -> tuple[int, Any]:
        request = Request(f"{self._base}/{path}", headers={"Authorization": self._login})  # noqa: S310 - http or https
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                return OK, json.loads(self._bounded(answer))
        except HTTPError as error:
            with error:
                if error.code in expected:
                    return error.code, json.loads(self._bounded(error))
                if error.code in NOT_ALLOWED:
                    raise self.unavailable("it refuses the user, who needs the tag 'management'") from None
                raise self.unavailable(f"its answer has status {error.code}") from None

    def _bounded(self, answer: IO[bytes]) -> bytes:
        body = answer.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            raise self.unavailable("its answer is too long")
        return body

    def unavailable(self, why: str) -> BrokerUnavailable:
        return BrokerUnavailable(f"the management API at {self._place} shows nothing: {why}")


def _opener(context: ssl.SSLContext | None) -> OpenerDirector:
    """Straight to the broker: a proxy that the environment names is for other traffic, and would see the password."""
    secure = [HTTPSHandler(context=context)] if context else []
    return build_opener(ProxyHandler({}), _NoWayElsewhere(), *secure)


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _policies(api: _Api, path: str) -> dict[str, Any]:
    """Definitions by name. Not everybody who may look at queues may look at policies."""
    status, found = api.ask(f"{path}/{api.vhost}", *NOT_ALLOWED)
    return {policy["name"]: policy["definition"] for policy in found} if status == OK else {}


def _queue(api: _Api, name: str, policies: Mapping[str, Mapping[str, Any]]) -> QueueState | None:
    status, found = api.ask(f"queues/{api.vhost}/{_quoted(name)}", NOT_FOUND)
    if status == NOT_FOUND:
        return None
    return QueueState(
        name=found["name"],
        type=found["type"],
        arguments=found["arguments"],
        policies=tuple(
            Policy(f"{sort} '{found[member]}'", policies[path].get(found[member]))
            for path, (member, sort) in POLICIES.items()
            if found.get(member)
        ),
        definition=_definition(found),
        members=len(found.get("members", ())),
        online=len(found.get("online", ())),
    )


def _definition(found: dict[str, Any]) -> dict[str, Any] | None:
    """A queue that was declared just now has no such member; one without policies has it empty, or as a list."""
    if "effective_policy_definition" not in found:
        return None
    return dict(found["effective_policy_definition"] or {})


def _bindings(api: _Api) -> frozenset[Binding]:
    _, found = api.ask(f"bindings/{api.vhost}")
    return frozenset(
        Binding(b["source"], b["destination"], b["routing_key"], b["destination_type"] == "exchange") for b in found
    )


def _alarms(api: _Api) -> tuple[str, ...]:
    status, found = api.ask("health/checks/alarms", IN_ALARM)
    if status == OK:
        return ()
    return tuple(f"{alarm['resource']} on {alarm['node']}" for alarm in found["alarms"])


def _at_least_once(api: _Api) -> bool | None:
    status, found = api.ask("feature-flags", *NOT_ALLOWED)
    if status != OK:
        return None
    states = [flag["state"] for flag in found if flag["name"] == STREAMS]
    return states in ([], ["enabled"])
