"""What only one room may touch. The directions between the rooms are contracts in pyproject.toml."""

import ast

import grimp
import pytest

from tests.house.files import is_under, ours, tree

PACKAGES = ("consumer", "config", "schemas")
OWNERS = {
    "aio_pika": "consumer.broker",
    "aiormq": "consumer.broker",
    "asyncpg": "consumer.store",
    "sqlite3": "consumer.store",
    "multiprocessing": "consumer.worker",
    "subprocess": "consumer.worker",
    "typer": "consumer.cli",
    "rich": "consumer.cli",
    "pydantic_settings": "config",
}
PROCESS_STARTERS = {"fork", "forkpty", "posix_spawn", "posix_spawnp", "create_subprocess_exec", "Popen"}
ENVIRONMENT = {"environ", "environb", "getenv", "putenv"}


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, include_external_packages=True)


@pytest.mark.parametrize(("library", "owner"), OWNERS.items())
def test_a_library_is_imported_by_its_own_room_only(graph: grimp.ImportGraph, library: str, owner: str) -> None:
    importers = graph.find_modules_that_directly_import(library) if library in graph.modules else set()
    assert {name for name in importers if not f"{name}.".startswith(f"{owner}.")} == set()


def uses(names: set[str], *owners: str) -> list[str]:
    """Return where a module outside of `owners` says `os.name`, or imports the name, for one of the names."""
    return [
        f"{path}:{node.lineno} {name}"
        for path in ours(*(f"{package}/**.py" for package in PACKAGES))
        if not is_under(path, *owners)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute | ast.alias)
        and (name := node.attr if isinstance(node, ast.Attribute) else node.name) in names
    ]


def test_only_the_worker_room_starts_processes() -> None:
    assert uses(PROCESS_STARTERS, "consumer/worker") == []


def test_only_the_settings_read_the_environment_and_only_the_guard_of_a_child_puts_it_back() -> None:
    assert uses(ENVIRONMENT, "config/settings.py", "consumer/worker/guard.py") == []
