"""Whatever answers at the management URL: one sentence, no secret, and never a request to another place."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from consumer.broker import management
from consumer.broker.connection import BrokerConfig
from consumer.broker.management import manage
from consumer.core.delay import Ladder
from consumer.core.errors import BrokerUnavailable
from consumer.core.topology import build

TOPOLOGY = build("jobs", "default", Ladder("jobs", levels=4), 100)
SECRET = "S3cr3t"
CONFIG = BrokerConfig(f"amqp://user:{SECRET}@127.0.0.1:1/a%2Fb", "test", connect_timeout=0.5)
Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def answering(answer: Answer) -> Iterator[tuple[str, list[str]]]:
    """A server, and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            answer(self)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def saying(status: int, body: bytes, **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (saying(200, b"<html>"), "its answer is no JSON"),
        (saying(200, b"[1]"), "not that of RabbitMQ's management plugin"),
        (saying(200, b"null"), "not that of RabbitMQ's management plugin"),
        (saying(200, b" " * 200), "its answer is too long"),
        (saying(401, b"{}"), "it refuses the user, who needs the tag 'management'"),
        (saying(404, b"{}"), "its answer has status 404"),
        (saying(500, b"oops"), "its answer has status 500"),
        (lambda handler: handler.wfile.write(b"SSH-2.0-x\r\n"), "the management API at 127.0.0.1"),
    ],
)
async def test_a_strange_answer_is_one_sentence_without_a_secret(
    monkeypatch: pytest.MonkeyPatch, answer: Answer, words: str
) -> None:
    monkeypatch.setattr(management, "MOST_BYTES", 100)
    with answering(answer) as (url, asked), pytest.raises(BrokerUnavailable) as refused:
        await manage(CONFIG, url, TOPOLOGY)
    assert words in str(refused.value)
    assert SECRET not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert asked[0] == "/api/policies/a%2Fb"


async def test_nobody_there_is_one_sentence() -> None:
    with answering(saying(200, b"")) as (url, _):
        pass
    with pytest.raises(BrokerUnavailable, match="Connection refused"):
        await manage(CONFIG, url, TOPOLOGY)


async def test_a_redirect_is_not_followed() -> None:
    with answering(saying(200, b"{}")) as (elsewhere, asked):
        redirect = saying(302, b"", Location=f"{elsewhere}/api")
        with answering(redirect) as (url, _), pytest.raises(BrokerUnavailable, match="status 302"):
            await manage(CONFIG, url, TOPOLOGY)
        assert asked == []


async def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(saying(401, b"{}")) as (proxy, through_proxy), answering(saying(401, b"{}")) as (url, asked):
        monkeypatch.setenv("http_proxy", proxy)
        with pytest.raises(BrokerUnavailable):
            await manage(CONFIG, url, TOPOLOGY)
    assert (through_proxy, len(asked)) == ([], 3)


async def test_a_server_that_is_silent_is_given_up() -> None:
    over = threading.Event()

    def silent(_: BaseHTTPRequestHandler) -> None:
        over.wait(20)

    with answering(silent) as (url, _):
        with pytest.raises(BrokerUnavailable, match="did not answer in time"):
            await manage(CONFIG, url, TOPOLOGY)
        over.set()
