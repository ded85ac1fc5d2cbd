"""What several workers at once need: pytest-xdist runs the tests in processes, each with servers of its own."""

import os
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

from tests.support.leash import die_with_parent


def die_with_parents() -> None:
    """A worker doesn't outlive a killed pytest, nor a pytest a killed make, and so their servers don't either."""
    if os.environ.keys() & {"PYTEST_XDIST_WORKER", "MAKELEVEL"}:
        die_with_parent()


class TestByTest(LoadScopeScheduling):  # type: ignore[misc]
    """Gives each worker one test after the other, but a module whose tests share a server as a whole, and first.

    xdist has groups for this, which pytest 9.2 doesn't let through: there a test has a name that can't be changed.
    """

    __test__ = False

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return module if shares_a_server(self.config.rootpath / module) else nodeid


@cache
def shares_a_server(module: Path) -> bool:
    return 'scope="module"' in module.read_text()
