from pathlib import Path

import pytest

from tests.support.marks import Marks


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    return Marks(tmp_path)
