"""The files that are ours: what git tracks, and what it would track."""

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.support.leash import ROOT

LIST = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]


def ours(*patterns: str) -> list[str]:
    """Return the paths, relative to the repository, that match any of git's patterns; all without one."""
    listed = subprocess.run([*LIST, *patterns], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(path for path in listed.split("\0") if path and (ROOT / path).is_file())


def text(path: str) -> str:
    return (ROOT / path).read_text()


def tree(path: str) -> ast.Module:
    return ast.parse(text(path), path)


def calls(path: str) -> Iterator[ast.Call]:
    """Yield every call in a module."""
    yield from (node for node in ast.walk(tree(path)) if isinstance(node, ast.Call))


def is_under(path: str, *folders: str) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)
