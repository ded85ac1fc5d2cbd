"""The section of kinds by itself, as tests of handlers read it. `load` is tried by starting daemons."""

from pathlib import Path

import pytest

from config.settings import kinds_in


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
