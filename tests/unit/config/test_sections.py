"""Which settings are refused, and that nothing which may be a secret is shown."""

import pytest

from config.settings import load
from consumer.core.delay import Ladder
from consumer.core.pointer import parse
from consumer.core.topology import build

SECRET = "S3cr3t"


def refused(monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    for name, value in variables.items():
        monkeypatch.setenv(f"CONSUMER_BROKER__{name}", value)
    with pytest.raises(ValueError, match=r"setting broker") as error:
        load()
    return str(error.value)


@pytest.mark.parametrize("hosts", [f"u:{SECRET}@rabbit", f"rabbit,{SECRET}:x", f"rabbit/{SECRET}", "rabbit:0", ":5672"])
def test_a_wrong_host_is_one_sentence_that_doesn_t_quote_it(monkeypatch: pytest.MonkeyPatch, hosts: str) -> None:
    sentence = refused(monkeypatch, HOSTS=hosts)
    assert "broker.hosts (CONSUMER_BROKER__HOSTS): wanted host or host:port" in sentence
    assert SECRET not in sentence


@pytest.mark.parametrize("setting", ["CA_FILE", "CERT_FILE", "KEY_FILE"])
def test_certificates_without_tls_are_refused(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    assert "need tls = true" in refused(monkeypatch, PASSWORD=SECRET, **{setting: "file.pem"})


def test_a_key_without_its_certificate_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "key_file needs cert_file" in refused(monkeypatch, TLS="true", KEY_FILE="file.pem")


@pytest.mark.parametrize("tls", [{"TLS": "true"}, {"URL": "amqps://rabbit"}])
def test_hosts_and_certificates_are_taken(monkeypatch: pytest.MonkeyPatch, tls: dict[str, str]) -> None:
    for name, value in {"HOSTS": " a, b:7 ,[::1]:8", "CA_FILE": "ca.pem", **tls}.items():
        monkeypatch.setenv(f"CONSUMER_BROKER__{name}", value)
    assert load().broker.hosts == ("a", "b:7", "[::1]:8")


def test_the_password_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSUMER_BROKER__PASSWORD", SECRET)
    chosen = load()
    assert SECRET not in repr(chosen) + chosen.model_dump_json()
    assert chosen.broker.password.get_secret_value() == SECRET


@pytest.mark.parametrize(
    "url", [f"http://u:{SECRET}@rabbit:15672", "rabbit:15672", f"https://rabbit?{SECRET}", "http://:1"]
)
def test_a_wrong_management_url_is_one_sentence_that_doesn_t_quote_it(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    sentence = refused(monkeypatch, MANAGEMENT_URL=url)
    assert "wanted http://host:port or https://host:port, without user and password" in sentence
    assert SECRET not in sentence


def test_a_limit_of_open_files_that_no_child_could_live_with_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSUMER_POOL__OPEN_FILES", "20")
    with pytest.raises(ValueError, match=r"setting pool\.open_files .*: wanted 0, or at least 64, found '20'"):
        load()
    monkeypatch.setenv("CONSUMER_POOL__OPEN_FILES", "64")
    assert load().pool.open_files == 64


@pytest.mark.parametrize("number", ["inf", "nan"])
def test_a_time_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch, number: str) -> None:
    monkeypatch.setenv("CONSUMER_COOLDOWN__FIRST_SECONDS", number)
    with pytest.raises(ValueError, match=r"cooldown.first_seconds .*finite number"):
        load()


@pytest.mark.parametrize("pointer", ["id", "/a~b", "/a~2", "~"])
def test_a_pointer_that_could_point_at_nothing_is_refused(monkeypatch: pytest.MonkeyPatch, pointer: str) -> None:
    monkeypatch.setenv("CONSUMER_MESSAGE__KEY_POINTER", pointer)
    with pytest.raises(ValueError, match=r"setting message\.key_pointer .*: wanted a JSON pointer such as /data/id"):
        load()


@pytest.mark.parametrize("pointer", ["", "/", "/data/id", "/a~1b~0c/0", "/with space/ü"])
def test_a_pointer_is_taken(monkeypatch: pytest.MonkeyPatch, pointer: str) -> None:
    monkeypatch.setenv("CONSUMER_MESSAGE__KEY_POINTER", pointer)
    assert load().message.key_pointer == pointer
    parse(pointer)


def test_a_queue_whose_waits_would_not_fit_into_a_routing_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    longest = ".".join(["q" * 59] * 3) + "q"
    monkeypatch.setenv("CONSUMER_QUEUE", longest)
    ladder = Ladder("n" * 60, levels=24, version=1000)
    exchange, routing_key = ladder.route(1, load().queue)
    topology = build("n" * 60, longest, ladder, 100)
    assert max(map(len, (exchange, routing_key, topology.dead_queue))) <= 255
    monkeypatch.setenv("CONSUMER_QUEUE", f"{longest}q")
    with pytest.raises(ValueError, match=r"setting queue .*at most 180"):
        load()
