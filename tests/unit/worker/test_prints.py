import logging
import sys
from collections.abc import Iterator

import pytest

from consumer.worker.prints import Prints, Records
from consumer.worker.voice import Voice


class Heard(Voice):
    """A voice that is its own speaker and remembers."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    @property
    def speaker(self) -> "Heard":  # type: ignore[override]
        return self

    silenced = False

    def write(self, stream: str, data: bytes) -> None:
        self.said.append((stream, bytes(data).decode()))

    def log(self, logger: str, level: int, text: str) -> None:
        self.said.append((logger, text))


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    return Heard()


@pytest.fixture
def records() -> Iterator[Records]:
    level = logging.root.level
    records = Records.install(logging.INFO)
    yield records
    logging.root.removeHandler(records)
    logging.root.setLevel(level)


def test_a_line_is_said_when_it_ends_and_what_has_no_end_with_the_run(heard: Heard) -> None:
    prints = Prints(heard)
    sys.stdout.write("a")
    sys.stdout.write("b\n")
    sys.stderr.write("c")
    assert heard.said == [("stdout", "ab\n")]
    prints.flush()
    assert heard.said == [("stdout", "ab\n"), ("stderr", "c")]


def test_it_looks_like_any_standard_output(heard: Heard) -> None:
    Prints(heard)
    assert (sys.stdout.fileno(), sys.stderr.fileno(), sys.stdout.isatty()) == (1, 2, False)
    assert (sys.stdout.encoding, sys.stdout.name) == ("utf-8", "<stdout>")
    sys.stdout.buffer.write(b"bytes\n")
    sys.stdout.flush()
    assert heard.said == [("stdout", "bytes\n")]


def test_after_a_run_that_closed_or_replaced_it_it_is_there_again(heard: Heard) -> None:
    prints = Prints(heard)
    sys.stdout.close()
    sys.stderr = None
    prints.flush()
    for file in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        assert file is not None
        file.write("x\n")
    assert [stream for stream, _ in heard.said] == ["stdout", "stderr", "stdout", "stderr"]


def test_records_of_all_loggers_are_said_from_the_wanted_level_on(heard: Heard, records: Records) -> None:
    Records.speak_with(heard)
    logging.basicConfig(level=logging.CRITICAL)  # what a job module does at its import changes nothing
    logging.getLogger("a.library").info("%s things", 3)
    logging.getLogger("a.library").debug("not wanted")
    assert heard.said == [("a.library", "3 things")]


def test_before_there_is_a_child_records_go_where_the_imports_of_job_modules_print(
    records: Records, capsys: pytest.CaptureFixture[str]
) -> None:
    logging.getLogger("a.library").warning("at the import")
    assert capsys.readouterr().err == "WARNING a.library: at the import\n"


def test_a_record_that_can_not_be_formatted_is_the_end_of_nothing(
    heard: Heard, records: Records, capsys: pytest.CaptureFixture[str]
) -> None:
    Records.speak_with(heard)
    logger = logging.getLogger("not.heard.by.pytest")
    logger.addHandler(records)
    logger.propagate = False
    logger.info("%d things", "three")
    assert heard.said == []
    assert "Logging error" in capsys.readouterr().err
