import pytest

from consumer.core.findings import Severity
from consumer.core.store_rules import of_store


def test_a_database_that_doesn_t_wait_for_its_disk_is_a_warning() -> None:
    found = list(of_store({"synchronous_commit": "off", "fsync": "off"}))
    assert [(finding.severity, finding.what) for finding in found] == [
        (Severity.WARNING, "PostgreSQL, synchronous_commit"),
        (Severity.WARNING, "PostgreSQL, fsync"),
    ]


@pytest.mark.parametrize("value", ["on", "local", "remote_write", "remote_apply"])
def test_one_that_does_is_none(value: str) -> None:
    assert list(of_store({"synchronous_commit": value, "fsync": "on"})) == []
