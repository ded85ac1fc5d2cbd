"""From the settings of a connection to the places where it may be opened; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

PLAIN_PORT, TLS_PORT = 5672, 5671


@dataclass(frozen=True, slots=True)
class Login:
    """Any of them may be empty: then what the URL says holds."""

    user: str = ""
    password: str = ""
    vhost: str = ""


def urls(url: str, hosts: Sequence[str], login: Login, *, tls: bool) -> tuple[str, ...]:
    """One complete URL for each host, or for the URL's own host where there are no others.

    A host without a port has the usual one: that of the URL belongs to the URL's own host.
    """
    parts = urlsplit(url)
    scheme = "amqps" if tls else parts.scheme
    user = _encoded(login.user or unquote(parts.username or ""))
    password = _encoded(login.password or unquote(parts.password or ""))
    at = f"{user}:{password}@" if user or password else ""
    vhost = _encoded(login.vhost or unquote(parts.path.removeprefix("/")))
    places = [_host_and_port(host, scheme) for host in hosts or [parts.netloc.rpartition("@")[2]]]
    return tuple(parts._replace(scheme=scheme, netloc=f"{at}{place}", path=f"/{vhost}").geturl() for place in places)


def logged_in(url: str, login: Login) -> str:
    """The same URL with what the login holds."""
    (changed,) = urls(url, [], login, tls=False)
    return changed


def shown(url: str) -> str:
    """Host, port and vhost, for people."""
    parts = urlsplit(url)
    vhost = unquote(parts.path.removeprefix("/")) or "/"
    return f"{_host_and_port(parts.netloc.rpartition('@')[2], parts.scheme)}, vhost '{vhost}'"


def _host_and_port(place: str, scheme: str) -> str:
    parts = urlsplit(f"//{place}")
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{host}:{parts.port or (TLS_PORT if scheme == 'amqps' else PLAIN_PORT)}"


def _encoded(text: str) -> str:
    return quote(text, safe="")
