import subprocess
import sys

import pytest

from consumer.core.errors import SettingsError, StoreUnavailable
from consumer.store.open import open_store
from tests.support.waiting import free_port

SECRET = "s3cr3t"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "jobs.sqlite3",
        "sqlite://jobs.sqlite3",
        "sqlite:///",
        f"mysql://user:{SECRET}@host/jobs",
        f"postgresql://user:{SECRET}@host:{SECRET}/jobs",
        f"postgresql://user:{SECRET}/jobs",
        f"postgresql://user:{SECRET}@host/jobs?sslmode=perhaps",
    ],
)
async def test_a_url_that_can_t_be_read_is_a_settings_error_in_one_line_without_the_password(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        await open_store(url)
    assert "wanted" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("password", [SECRET, f"a/{SECRET}", f"a@{SECRET}", f"a?{SECRET}", f"a%2F{SECRET}"])
async def test_a_server_that_is_away_is_unavailable_and_its_password_not_told(password: str) -> None:
    with pytest.raises((StoreUnavailable, SettingsError)) as caught:
        await open_store(f"postgresql://user:{password}@127.0.0.1:{free_port()}/jobs")
    assert SECRET not in str(caught.value)


async def test_a_server_that_is_away_is_named() -> None:
    port = free_port()
    with pytest.raises(StoreUnavailable, match=f"127.0.0.1:{port}/jobs"):
        await open_store(f"postgresql://user:{SECRET}@127.0.0.1:{port}/jobs")


@pytest.mark.parametrize("url", ["memory://", "sqlite:///:memory:"])
def test_the_driver_of_another_database_is_never_imported(url: str) -> None:
    program = f"""
import asyncio, sys
from consumer.store.open import open_store
async def main():
    await (await open_store({url!r})).close()
asyncio.run(main())
sys.exit("asyncpg" in sys.modules or ("sqlite3" in sys.modules) != {url.startswith("sqlite")})
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
