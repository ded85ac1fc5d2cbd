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


def test_a_section_that_is_no_json_is_told_with_the_form_that_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSUMER_BROKER", "amqp://u:S3cr3t@rabbit")
    with pytest.raises(ValueError, match=r'"broker".*: a section is JSON, and one of its settings CONSUMER_') as error:
        load()
    assert "S3cr3t" not in str(error.value)
