"""What commands say where no broker is asked: of settings and store, and to wrong input, in one sentence."""

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from typer.testing import CliRunner, Result

from consumer.cli.commands import app_with

UNKNOWN, WRONG = 1, 2
PASSWORD = "S3cr3t!#/@:%41"
ENCODED = quote(PASSWORD, safe="")
AWAY = {"BROKER__URL": "amqp://127.0.0.1:1", "STORE__URL": "sqlite:////nowhere/at/all"}
"""Whoever asks broker or store all the same ends with another code."""


@pytest.fixture(autouse=True)
def unlogged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the logs of later tests would go to the output of these."""
    monkeypatch.setattr("consumer.cli.output.configure", lambda *_: None)


def said(*arguments: str, **settings: str) -> Result:
    given = {f"CONSUMER_{name}": value for name, value in (AWAY | settings).items()}
    return CliRunner(env=given).invoke(app_with(arguments[0]), list(arguments), prog_name="consumer")


def good(result: Result) -> str:
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


def is_one_sentence(result: Result, words: str, code: int = WRONG) -> None:
    told = result.stdout + result.stderr
    assert (result.exit_code, result.stdout) == (code, ""), told
    assert result.stderr.startswith("consumer: "), told
    assert result.stderr.count("\n") == 1, told
    assert words in result.stderr
    assert result.stderr.removesuffix("\n").isprintable()
    assert all(secret not in told for secret in (PASSWORD, ENCODED, "S3cr3t"))


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("BROKER__URL", f"http://guest:{ENCODED}@127.0.0.1:1/", "broker.url"),
        ("BROKER__URL", f"amqp://guest:{ENCODED}@127.0.0.1:port/", "broker.url"),
        ("BROKER__URL", f"amqp://guest:{PASSWORD}@127.0.0.1:1/", "broker.url"),
        ("BROKER__URL", "amqp://", "broker.url"),
        ("STORE__URL", f"mysql://root:{ENCODED}@127.0.0.1/x", "store.url"),
        ("POOL__PROCESES", "2", "CONSUMER_POOL__PROCESES"),
        ("POOL__PROCESSES", "many", "CONSUMER_POOL__PROCESSES"),
        ("BROKER__PREFETCH", "-1", "CONSUMER_BROKER__PREFETCH"),
        ("QUEUE", "a queue", "CONSUMER_QUEUE"),
        ("LOG__LEVEL", "loud", "CONSUMER_LOG__LEVEL"),
        ("CONFIG", "nowhere.toml", "nowhere.toml"),
        ("NO_SUCH", f"{PASSWORD}", "CONSUMER_NO_SUCH"),
    ],
)
def test_a_wrong_setting_is_one_sentence(setting: str, value: str, words: str) -> None:
    is_one_sentence(said("run", **{setting: value}), words)


def test_what_nothing_listens_on_is_told_in_plain_words(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store"
    broker_away = said("submit", "echo", "1", STORE__URL=store)
    is_one_sentence(broker_away, "no connection to the broker at 127.0.0.1:1, vhost '/': Connection refused\n", 1)
    store_away = said("status", "echo", "k", STORE__URL="postgresql://127.0.0.1:1/jobs")
    is_one_sentence(store_away, "the store at 127.0.0.1:1/jobs can't be used: Connection refused\n", 1)


def test_a_store_file_that_can_not_be_one_is_told_with_the_way_out(tmp_path: Path) -> None:
    is_one_sentence(said("status", "echo", "k"), "; its folder must be there, and writable\n", 1)
    text = tmp_path / "shop.py"
    text.write_text("import this\n" * 100)
    is_one_sentence(
        said("status", "echo", "k", STORE__URL=f"sqlite:///{text}"), "; name another file in store.url\n", 1
    )


@pytest.mark.parametrize("command", ["show", "check"])
def test_wrong_settings_are_not_shown_and_not_valid(command: str) -> None:
    is_one_sentence(said("config", command, POOL__PROCESES="2"), "CONSUMER_POOL__PROCESES")


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ("{", "invalid_json"),
        ("NaN", "invalid_json"),
        ('{"a": 1, "a": 2}', "invalid_json"),
        ("[" * 200 + "]" * 200, "too_deep"),
        ("9" * 5000, "number_out_of_range"),
        ("@nowhere.json", "nowhere.json"),
        ("\udcff", "invalid_json"),
    ],
)
def test_a_wrong_payload_is_refused(payload: str, words: str) -> None:
    is_one_sentence(said("submit", "echo", payload), words)


@pytest.mark.parametrize(
    ("kind", "key"),
    [("", "k"), ("x" * 201, "k"), ("ü" * 200, "k"), ("a\x1b[2Jkind", "k"), ("echo", "x" * 501), ("echo", "")],
)
def test_a_wrong_kind_or_key_is_refused(kind: str, key: str) -> None:
    is_one_sentence(said("submit", kind, "1", "--key", key), "kind" if kind != "echo" else "key")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--delay", "soon"), "--delay 'soon' is no duration"),
        (("--delay", "5", "--at", "2030-01-31T06:00Z"), "say the same thing twice"),
        (("--deadline", "2020-01-31T06:00Z"), "is over already"),
        (("--delay", ""), "--delay '' is no duration"),
        (("--at", ""), "--at '' is no time"),
        (("--deadline", ""), "--deadline '' is no duration"),
        (("--delay", "2h", "--deadline", "1h"), "it would never start"),
    ],
    ids=["word", "both", "past", "no delay", "no time", "no deadline", "delayed beyond it"],
)
def test_a_time_that_can_not_be_meant_is_refused(options: tuple[str, ...], words: str) -> None:
    is_one_sentence(said("submit", "echo", "1", *options), words)


@pytest.mark.parametrize("arguments", [["nonsense"], ["submit"], ["status", "one"], ["run", "--nonsense"]])
def test_a_wrong_command_line_is_told_with_the_usage(arguments: list[str]) -> None:
    result = said(*arguments)
    assert (result.exit_code, result.stdout) == (WRONG, "")
    assert "Usage" in result.stderr
    assert "Traceback" not in result.stderr


WRONG_LETTERS = {
    ("list", "--after", "1d"): "there is no dead letter '1d'",
    ("export", "--output", "/nowhere/at/all"): "can't be written",
    ("import", "/nowhere/at/all"): "can't be read",
    ("redrive", "1d"): "there is no dead letter '1d'",
    ("purge", "--code", "nonsense", "--yes"): "there is no code 'nonsense'",
    ("purge", "--kind", "", "--yes"): "--kind is empty",
    ("purge", "--yes"): "--yes wants ids, a filter or --all",
    ("edit", "1d", "--payload", "1"): "there is no dead letter '1d'",
    ("edit", "1d", "--payload", "{"): "the payload is not acceptable JSON",
}


@pytest.mark.parametrize(("words", "wrong"), WRONG_LETTERS.items())
def test_a_wrong_word_about_dead_letters_is_one_sentence(words: tuple[str, ...], wrong: str, tmp_path: Path) -> None:
    """The store is asked, the broker isn't."""
    is_one_sentence(said("dead", *words, STORE__URL=f"sqlite:///{tmp_path}/jobs.sqlite3"), wrong)


def test_settings_are_shown_and_checked() -> None:
    url = {"BROKER__URL": f"amqp://guest:{ENCODED}@127.0.0.1:1/", "POOL__PROCESSES": "2"}
    shown = json.loads(told := good(said("config", "show", "--json", **url)))
    assert (shown["queue"], shown["pool"]["processes"]) == ("default", 2)
    assert "S3cr3t" not in told + (plain := good(said("config", "show", **url)))
    assert "pool.processes" in plain
    assert "valid" in good(said("config", "check", **url))
    assert json.loads(good(said("config", "check", "--json", **url))) == {"settings": "valid"}


def test_the_topology_is_shown_from_the_settings_alone() -> None:
    told = json.loads(good(said("topology", "show", "--json")))
    assert {"jobs.default", "jobs.default.dead"} <= {queue["name"] for queue in told["queues"]}
    assert "queue jobs.default" in good(said("topology", "show"))


@pytest.mark.parametrize(
    "job", [("echo", "never"), ("echo", "never", "--json"), ("a\x1b]0;title\x07", "k\x9b2J\u202e")]
)
def test_a_job_that_nobody_has_seen_is_unknown(job: tuple[str, ...], tmp_path: Path) -> None:
    is_one_sentence(said("status", *job, STORE__URL=f"sqlite:///{tmp_path}/jobs.sqlite3"), "no job of kind", UNKNOWN)
