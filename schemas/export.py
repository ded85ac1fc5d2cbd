"""Writes JSON Schema files and an AsyncAPI 3 document to schemas/json/: `python -m schemas.export [--check]`.

It refuses to overwrite the schema of something that producers send by one that refuses what they sent before.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from schemas.asyncapi import document
from schemas.cloudevent import CloudEvent
from schemas.compatible import breaks
from schemas.dead_letter import DeadLetterHeaders
from schemas.job import JobHeaders
from schemas.payloads import PAYLOADS
from schemas.result import JobResult

FOLDER = Path(__file__).parent / "json"

SENT_TO_US: dict[str, type[BaseModel]] = {
    "job.headers.json": JobHeaders,
    "cloudevent.json": CloudEvent,
    **{f"payload.{kind}.json": model for kind, model in PAYLOADS.items()},
}


def exports() -> dict[str, Any]:
    """Every file by its name."""
    files = {name: _schema(model.model_json_schema()) for name, model in SENT_TO_US.items()}
    files["dead-letter.headers.json"] = _schema(DeadLetterHeaders.model_json_schema())
    files["result.json"] = _schema(JobResult.model_json_schema(mode="serialization"))
    files["asyncapi.json"] = document()
    return files


def stale(folder: Path) -> list[str]:
    """Names of files that are not what the models say, or that no model stands behind."""
    wanted = {name: _text(content) for name, content in exports().items()}
    found = {file.name: file.read_text("utf-8") for file in folder.glob("*.json")}
    return sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))


def broken(folder: Path) -> list[str]:
    """Changes since the last export that refuse older messages."""
    files = exports()
    before = {name: json.loads((folder / name).read_bytes()) for name in SENT_TO_US if (folder / name).exists()}
    return [f"{name}: {change}" for name, old in before.items() for change in breaks(old, files[name])]


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    files = exports()
    for file in folder.glob("*.json"):
        if file.name not in files:
            file.unlink()
    for name, content in files.items():
        (folder / name).write_text(_text(content), "utf-8")


def main(arguments: list[str]) -> str | None:
    """What is wrong, in a sentence, or nothing."""
    parser = argparse.ArgumentParser(prog="python -m schemas.export", description="Write schemas/json/.")
    parser.add_argument("--check", action="store_true", help="write nothing, fail where a file is stale")
    if parser.parse_args(arguments).check:
        files = stale(FOLDER)
        names = ", ".join(files)
        return f"schemas/json/ is stale ({names}): run python -m schemas.export" if files else None
    if changes := broken(FOLDER):
        listed = "\n  ".join(changes)
        return (
            f"This would refuse messages that were right before:\n  {listed}\n"
            "Make the change compatible, or give it a kind of its own (name.v2)."
        )
    write(FOLDER)
    return None


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _text(content: Any) -> str:
    return json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
