"""Reaching the broker: several hosts, TLS, credentials that change, permissions that are missing, a node that boots."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.certificates import Authority
from tests.support.command import consumer
from tests.support.daemon import Daemon, Line
from tests.support.marks import Marks
from tests.support.processes import cpu_seconds
from tests.support.producer import Producer
from tests.support.proxy import Proxy
from tests.support.rabbit import Rabbit
from tests.support.rows import all_are
from tests.support.settings import settings
from tests.support.users import User, binary
from tests.support.waiting import eventually, free_port

ODD = "p#a/s@s:%41 ü+&?"
CALM = 0.8
"""Seconds of CPU that some sessions which were refused may cost."""


@pytest.fixture
def user(rabbit: Rabbit, amqp_url: str) -> Iterator[User]:
    user = User(rabbit, amqp_url.rpartition("/")[2])
    yield user
    user.drop()


class PasswordFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.says("first\n")

    def says(self, text: str) -> None:
        self.path.write_text(text)

    def vanishes(self) -> None:
        self.path.unlink()


@pytest.fixture
def password_file(tmp_path: Path) -> PasswordFile:
    return PasswordFile(tmp_path / "password")


def by_files(amqp_url: str, sqlite_url: str, user: User, password_file: PasswordFile) -> dict[str, str]:
    return settings(
        amqp_url, sqlite_url, BROKER__USER=user.name, BROKER__PASSWORD_FILE=str(password_file.path), POOL__PROCESSES="1"
    )


def no_session(line: Line) -> bool:
    return bool(line["event"] == "no session with the broker")


def ended(line: Line) -> bool:
    return bool(line["event"] == "session ended")


async def is_not_ready(daemon: Daemon, because: str) -> None:
    async def so() -> bool:
        status, body = await daemon.get("/readyz")
        return status == 503 and because in body

    await eventually(so, f"the daemon is not ready, and says {because!r}")
    assert (await daemon.get("/livez"))[0] == 200
    assert await daemon.metric("consumer_paused") == 1


async def does_a_job(url: str, store: str, key: str, total: int) -> None:
    async with Producer(url) as producer:
        await producer.submit("echo", 1, key)
        assert key in await all_are("succeeded", store, total)


async def test_user_password_and_vhost_may_hold_any_characters_as_they_are(rabbit: Rabbit, sqlite_url: str) -> None:
    rabbit.evaluate(f"ok = rabbit_vhost:add({binary(ODD)}, {binary('tests')})")
    user = User(rabbit, ODD)
    user.has_password(ODD)
    chosen = settings(
        f"amqp://127.0.0.1:{rabbit.port}", sqlite_url, BROKER__USER=user.name, BROKER__PASSWORD=ODD, BROKER__VHOST=ODD
    )
    try:
        async with Daemon(chosen) as daemon:
            await daemon.ready()
            assert ODD not in daemon.output
        shown = await consumer("config", "show", settings=chosen)
        assert "broker.password" in shown.out
        assert "broker.user" in shown.out
        assert f"password  {ODD}" not in " ".join(shown.out.split())
    finally:
        user.drop()
        rabbit.evaluate(f"rabbit_vhost:delete({binary(ODD)}, {binary('tests')})")


async def test_a_password_that_is_rotated_needs_no_restart(
    amqp_url: str, sqlite_url: str, user: User, password_file: PasswordFile
) -> None:
    async with Proxy(amqp_url) as proxy, Daemon(by_files(proxy.url, sqlite_url, user, password_file)) as daemon:
        await daemon.ready()
        user.has_password("second")
        password_file.says("second\n")
        proxy.cut()
        await daemon.logged(ended)
        await daemon.ready()
        await does_a_job(amqp_url, sqlite_url, "after", 1)
        assert not any(map(no_session, daemon.logs))


async def test_a_password_that_is_wrong_after_a_good_start_is_said_and_tried_again(
    amqp_url: str, sqlite_url: str, user: User, password_file: PasswordFile
) -> None:
    async with Proxy(amqp_url) as proxy, Daemon(by_files(proxy.url, sqlite_url, user, password_file)) as daemon:
        await daemon.ready()
        user.has_password("s3cond")
        proxy.cut()
        lines = await daemon.logged(no_session, 3)
        assert all("refused user or password" in line["error"] for line in lines)
        await is_not_ready(daemon, "refused user or password")
        assert await daemon.metric("consumer_broker_connected") == 0
        password_file.says("s3cond")
        await daemon.ready()
        await does_a_job(amqp_url, sqlite_url, "after", 1)
        assert "s3cond" not in daemon.output


@pytest.mark.any_broker
async def test_a_password_file_that_isn_t_there_is_one_sentence(
    amqp_url: str, sqlite_url: str, user: User, password_file: PasswordFile
) -> None:
    password_file.vanishes()
    done = await consumer("run", settings=by_files(amqp_url, sqlite_url, user, password_file))
    assert done.code == 2
    assert "broker.password_file can't be read" in done.err
    assert str(password_file.path) in done.err


async def test_the_next_host_is_tried_where_one_is_away(amqp_url: str, sqlite_url: str) -> None:
    async with Proxy(amqp_url) as one, Proxy(amqp_url) as other:
        hosts = f"127.0.0.1:{free_port()},127.0.0.1:{one.port},127.0.0.1:{other.port}"
        async with Daemon(settings(amqp_url, sqlite_url, BROKER__HOSTS=hosts)) as daemon:
            await daemon.ready()
            assert (one.connections, other.connections) == (2, 0)
            one.refuse()
            one.cut()
            await daemon.logged(ended)
            await daemon.ready()
            assert (one.connections, other.connections) == (0, 2)
            await does_a_job(amqp_url, sqlite_url, "after", 1)
            one.accept()
            other.refuse()
            other.cut()
            await daemon.logged(ended, 2)
            await daemon.ready()
            assert (one.connections, other.connections) == (2, 0)


async def test_commands_find_the_host_that_answers(amqp_url: str, sqlite_url: str) -> None:
    async with Proxy(amqp_url) as one:
        hosts = f"127.0.0.1:{free_port()},127.0.0.1:{one.port}"
        done = await consumer("topology", "declare", settings=settings(amqp_url, sqlite_url, BROKER__HOSTS=hosts))
        assert done.code == 0, done


async def test_a_broker_with_tls_is_verified_and_shown_our_certificate(
    amqp_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    authority = Authority(tmp_path, "ca")
    ours = authority.issue("client")
    async with Proxy(amqp_url, authority.server(authority.issue("server"))) as proxy:
        chosen = settings(
            proxy.url,
            sqlite_url,
            BROKER__TLS="true",
            BROKER__CA_FILE=authority.ca,
            BROKER__CERT_FILE=ours.cert,
            BROKER__KEY_FILE=ours.key,
        )
        async with Daemon(chosen) as daemon:
            await daemon.ready()
            await does_a_job(amqp_url, sqlite_url, "one", 1)
            proxy.cut()
            await daemon.logged(ended)
            await daemon.ready()


@pytest.mark.any_broker
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("authority", "CERTIFICATE_VERIFY_FAILED"),
        ("name", "IP address mismatch"),
        ("no certificate", "closed"),
        ("no file", "no-such.pem"),
    ],
)
async def test_a_broker_with_tls_that_can_t_be_verified_gets_no_password(
    amqp_url: str, sqlite_url: str, tmp_path: Path, wrong: str, said: str
) -> None:
    authority, stranger = Authority(tmp_path, "ca"), Authority(tmp_path, "stranger")
    ours = authority.issue("client")
    shown = authority.issue("server", "DNS:elsewhere.example" if wrong == "name" else "IP:127.0.0.1")
    trusted = {"authority": stranger.ca, "no file": str(tmp_path / "no-such.pem")}.get(wrong, authority.ca)
    certificate = {} if wrong == "no certificate" else {"BROKER__CERT_FILE": ours.cert, "BROKER__KEY_FILE": ours.key}
    async with Proxy(amqp_url, authority.server(shown)) as proxy:
        chosen = settings(proxy.url, sqlite_url, BROKER__TLS="true", BROKER__CA_FILE=trusted, **certificate)
        if wrong == "no file":
            done = await consumer("run", settings=chosen)
            assert (done.code, said in done.err) == (2, True), done
            return
        async with Daemon(chosen) as daemon:
            lines = await daemon.logged(no_session, 2)
            assert all(said in line["error"] for line in lines), lines
            assert proxy.connections == 0


async def test_a_consumer_that_may_not_read_pauses_until_it_may(
    amqp_url: str, sqlite_url: str, user: User, password_file: PasswordFile
) -> None:
    async with Proxy(amqp_url) as proxy, Daemon(by_files(proxy.url, sqlite_url, user, password_file)) as daemon:
        await daemon.ready()
        cpu = cpu_seconds(daemon.pid)
        user.may(read="^jobs$|dlx|delay")
        proxy.cut()
        lines = await daemon.logged(ended, 4)
        assert {line["reason"] for line in lines[1:]} == {"channel_closed"}
        assert "ACCESS_REFUSED" in lines[-1]["detail"]
        await is_not_ready(daemon, "ACCESS_REFUSED")
        (loud,) = await daemon.logged(lambda line: line["level"] == "error")
        assert loud["reason"] == "channel_closed"
        assert cpu_seconds(daemon.pid) - cpu < CALM
        user.may()
        await daemon.ready()
        await does_a_job(amqp_url, sqlite_url, "after", 1)


async def test_a_retry_that_may_not_be_published_is_not_lost(
    amqp_url: str, sqlite_url: str, user: User, password_file: PasswordFile, marks: Marks
) -> None:
    declared = await consumer("topology", "declare", settings=settings(amqp_url, sqlite_url))
    assert declared.code == 0, declared
    user.may(write="^$")
    chosen = by_files(amqp_url, sqlite_url, user, password_file) | {"TOPOLOGY__MODE": "check"}
    async with Daemon(chosen) as daemon:
        await daemon.ready()
        marks.open_gate()
        async with Producer(amqp_url) as producer:
            await producer.submit("fails_at_gate", marks.payload, "one")
        lines = await daemon.logged(ended, 4)
        assert {line["reason"] for line in lines} <= {"channel_closed", "publish_failed"}
        assert any("ACCESS_REFUSED" in line["detail"] for line in lines)
        user.may()
        found = await all_are("succeeded", sqlite_url, 1)
        assert found["one"]["attempt"] == 2
        await daemon.ready()


async def test_a_daemon_that_may_not_declare_any_more_pauses_until_it_may(
    amqp_url: str, sqlite_url: str, user: User, password_file: PasswordFile
) -> None:
    async with Proxy(amqp_url) as proxy, Daemon(by_files(proxy.url, sqlite_url, user, password_file)) as daemon:
        await daemon.ready()
        user.may(configure="^$")
        proxy.cut()
        lines = await daemon.logged(no_session, 2)
        assert all("no permission for exchange 'jobs'" in line["error"] for line in lines)
        await is_not_ready(daemon, "no permission")
        user.may()
        await daemon.ready()


async def test_a_virtual_host_that_still_boots_is_waited_for(rabbit: Rabbit, sqlite_url: str) -> None:
    """The port is open, and user and password are right."""
    url = rabbit.vhost()
    vhost = binary(url.rpartition("/")[2])
    rabbit.evaluate(f"rabbit_vhost_sup_sup:stop_and_delete_vhost({vhost})")
    async with Daemon(settings(url, sqlite_url)) as daemon:
        lines = await daemon.logged(no_session, 3)
        assert all("is down" in line["error"] for line in lines), lines
        assert (await daemon.get("/livez"))[0] == 200
        rabbit.evaluate(f"{{ok, _}} = rabbit_vhost_sup_sup:start_vhost({vhost})")
        await daemon.ready()
        await does_a_job(url, sqlite_url, "after", 1)
    rabbit.delete_vhost(url)
