"""What is refused before a store or a broker is opened."""

import pytest

from config.settings import load
from consumer import operations
from consumer.core.errors import SettingsError


@pytest.mark.parametrize(
    ("kind", "key", "words"),
    [
        ("echo\udcff", "k", "its kind holds"),
        ("echo", "k\udcff", "its key holds"),
        ("", "k", "its kind is missing"),
        ("echo", "", "its key is missing"),
        ("echo", "k" * 501, "its key is longer"),
    ],
)
async def test_what_no_job_can_be_called_is_not_submitted(kind: str, key: str, words: str) -> None:
    with pytest.raises(SettingsError, match=f"^no job can be called so: {words}"):
        await operations.submit(load(), kind, key, b"{}")


@pytest.mark.parametrize(("kind", "key"), [("echo\udcff", "k"), ("echo", "k\udcff"), ("", "k"), ("echo", "")])
async def test_nor_is_it_cancelled(kind: str, key: str) -> None:
    with pytest.raises(SettingsError, match=r"^no job can be called so: "):
        await operations.cancel(load(), kind, key)
