"""A payload is tried by the real model of its kind in a process of its own, where modules may do what they like."""

from pathlib import Path

import pytest

from consumer.core.errors import JobModulesError
from consumer.worker.config import PoolConfig
from consumer.worker.tried import objection
from tests.support.pools import JOBS

GOOD = b'{"day": "2024-05-01", "count": 3}'


def config(*modules: str, path: Path = JOBS) -> PoolConfig:
    return PoolConfig(modules=modules, path=(str(path),), start_timeout=20)


@pytest.mark.parametrize(
    ("kind", "body", "pointer", "wrong"),
    [
        ("strict", GOOD, "", ""),
        ("strict", b'{"in": ' + GOOD + b"}", "/in", ""),
        ("strict", b'{"day": "2024-05-01"}', "", "invalid_payload: count: missing"),
        ("strict", GOOD, "/in", "invalid_payload: there is nothing at /in in the body"),
        ("strict", b"{", "", "invalid_json: "),
        ("nosuch", GOOD, "", "no handler is declared for kind 'nosuch'"),
    ],
)
async def test_what_the_model_says_is_said(kind: str, body: bytes, pointer: str, wrong: str) -> None:
    said = await objection(config("ordinary"), kind, body, pointer)
    assert said.startswith(wrong)
    assert bool(said) == bool(wrong)


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("import nosuch", "job module 'odd' can't be imported: ModuleNotFoundError"),
        ("import os; os._exit(3)", "ended their process while they were asked"),
    ],
)
async def test_modules_that_can_not_be_asked_are_told(source: str, wrong: str, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(source)
    with pytest.raises(JobModulesError, match=wrong):
        await objection(config("odd", path=tmp_path), "k", GOOD, "")


async def test_what_the_modules_print_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(
        'import os\nfrom consumer import job\nprint("{}")\nos.write(1, b"{}")\n'
        '@job("k")\ndef run(payload: int) -> None: ...\n'
    )
    assert await objection(config("loud", path=tmp_path), "k", b"1", "") == ""
