"""Writes the table of values in README.md: `python helm/document.py`. A test keeps it current.

A row is a key of values.yaml with a comment right above it; a group whose keys have comments has none itself.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
BEGIN, END = "<!-- values: written by document.py -->\n", "<!-- end of values -->"


def comment_above(lines: list[str], line: int) -> str:
    """The run of comment lines that ends right above `line` (counted from 0)."""
    words: list[str] = []
    while line > 0 and lines[line - 1].lstrip().startswith("#"):
        line -= 1
        words.insert(0, lines[line].lstrip().removeprefix("#").strip())
    return " ".join(words)


def rows(node: yaml.MappingNode, lines: list[str], prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    """Every documented key with its default and its comment; a key that nothing documents is an error."""
    for key, value in node.value:
        name = f"{prefix}{key.value}"
        comment = comment_above(lines, key.start_mark.line)
        if comment:
            yield name, yaml.safe_load(yaml.serialize(value)), comment
        elif isinstance(value, yaml.MappingNode) and value.value:
            yield from rows(value, lines, f"{name}.")
        else:
            raise ValueError(f"{name} in values.yaml has no comment above it, and the table needs one.")


def table(text: str) -> str:
    root = yaml.compose(text)
    assert isinstance(root, yaml.MappingNode)
    cells = [
        f"| `{name}` | {comment} | `{json.dumps(value)}` |" for name, value, comment in rows(root, text.splitlines())
    ]
    return "\n".join(["| value | what it is | default |", "|---|---|---|", *cells]) + "\n"


def readme() -> str:
    """README.md with the table of now in the place of the old one."""
    text = (HERE / "README.md").read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return before + BEGIN + table((HERE / "values.yaml").read_text(encoding="utf-8")) + END + after


if __name__ == "__main__":
    (HERE / "README.md").write_text(readme(), encoding="utf-8")
