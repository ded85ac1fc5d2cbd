"""What can't be read as settings, and the section of kinds by itself, as tests of handlers read it."""

from pathlib import Path

import pytest

from config.settings import kinds_in, load


def test_without_a_file_nothing_is_said_of_any_kind() -> None:
    assert kinds_in(None) == {}


def test_kinds_are_read_and_all_else_in_the_file_is_not(tmp_path: Path) -> None:
    file = tmp_path / "consumer.toml"
    file.write_text('queue = "invoices"\n[kinds."order.charge"]\nmax_attempts = 8\nretry_on = ["Busy"]\n')
    kind = kinds_in(file)["order.charge"]
    assert (kind.max_attempts, kind.retry_on, kind.timeout_seconds) == (8, ("Busy",), None)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, r"^the settings file .*consumer.toml can't be read: No such file or directory$"),
        ("[kinds", r"^the settings file .*consumer.toml is not valid TOML: "),
        ("[kinds.k]\nmax_attempts = 0", r"^setting kinds.k.max_attempts .*greater than 0, found '0'$"),
        ("[kinds.k]\nattempts = 3", r"^setting kinds.k.attempts .* is unknown"),
    ],
)
def test_a_file_that_a_daemon_would_refuse_is_refused_in_one_sentence(
    tmp_path: Path, text: str | None, sentence: str
) -> None:
    file = tmp_path / "consumer.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ValueError, match=sentence):
        kinds_in(file)


@pytest.mark.parametrize("name", ["", "nowhere.toml"])
def test_what_is_no_file_of_settings_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A folder is what a file becomes that is mounted before it is there."""
    monkeypatch.setenv("CONSUMER_CONFIG", str(tmp_path / name))
    with pytest.raises(ValueError, match=r"^the file named by CONSUMER_CONFIG can't be read: "):
        load()


@pytest.mark.parametrize("found", ["amqp://u:S3cr3t@rabbit", '"S3cr3t"'], ids=["no JSON", "no section"])
def test_a_section_that_is_none_is_told_with_the_form_that_is_wanted(
    monkeypatch: pytest.MonkeyPatch, found: str
) -> None:
    monkeypatch.setenv("CONSUMER_BROKER", found)
    with pytest.raises(ValueError, match="setting broker") as error:
        load()
    assert str(error.value) == (
        "setting broker (CONSUMER_BROKER): wanted a section, as JSON; one setting of it goes by CONSUMER_BROKER__NAME"
    )


def test_a_wrong_setting_of_a_kind_is_told_with_a_variable_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSUMER_KINDS", '{"order.Mail": {"max_attemps": 8, "jitter": "some"}}')
    with pytest.raises(ValueError, match="kinds") as error:
        load()
    unknown, wrong = sorted(str(error.value).split("; setting "), key=len, reverse=True)
    assert "kinds.order.Mail.max_attemps (CONSUMER_KINDS) is unknown; a kind has timeout_seconds, wait_" in unknown
    assert "kinds.order.Mail.jitter (CONSUMER_KINDS): input should be" in wrong


def test_a_name_that_can_not_be_one_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSUMER_QUEUE", "a queue")
    with pytest.raises(ValueError, match="queue") as error:
        load()
    assert str(error.value) == (
        "setting queue (CONSUMER_QUEUE): wanted words of at most 60 letters, digits, - and _, with dots between them, "
        "found 'a queue'"
    )
