from pathlib import Path

import pytest

from tests.contract.stores import Subject


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Subject:
    if request.param == "postgres":
        return Subject(request.getfixturevalue("postgres_url"))
    return Subject({"memory": "memory://", "sqlite": f"sqlite:///{tmp_path}/jobs.sqlite3"}[request.param])
