import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from schemas import export


class Wider(BaseModel):
    n: int
    limit: int | None = None


class Narrower(BaseModel):
    n: int
    limit: int


def test_the_exported_schemas_are_current() -> None:
    assert export.main(["--check"]) is None


def test_a_stale_missing_or_left_over_file_is_named(tmp_path: Path) -> None:
    export.write(tmp_path)
    assert export.stale(tmp_path) == []
    (tmp_path / "result.json").write_text("{}")
    (tmp_path / "cloudevent.json").unlink()
    (tmp_path / "payload.gone.json").write_text("{}")
    assert export.stale(tmp_path) == ["cloudevent.json", "payload.gone.json", "result.json"]
    export.write(tmp_path)
    assert export.stale(tmp_path) == []


def test_the_check_fails_with_a_sentence_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "FOLDER", tmp_path)
    said = export.main(["--check"])
    assert said is not None
    assert "run python -m schemas.export" in said
    assert list(tmp_path.iterdir()) == []
    assert export.main([]) is None
    assert export.main(["--check"]) is None


def test_a_change_that_refuses_older_messages_is_not_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "FOLDER", tmp_path)
    monkeypatch.setattr(export, "SENT_TO_US", {"payload.a.json": Wider})
    assert export.main([]) is None
    monkeypatch.setattr(export, "SENT_TO_US", {"payload.a.json": Narrower})
    said = export.main([])
    assert said is not None
    assert "payload.a.json: /limit: is required and was not" in said
    assert export.stale(tmp_path) == ["payload.a.json"]


def test_every_exported_file_is_a_json_schema_or_the_asyncapi_document() -> None:
    for name, content in export.exports().items():
        if name != "asyncapi.json":
            Draft202012Validator.check_schema(content)


def test_every_schema_and_reference_in_the_asyncapi_document_is_sound() -> None:
    document = export.exports()["asyncapi.json"]
    assert document["asyncapi"] == "3.0.0"
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    references = list(refs(document))
    assert len(references) > 10
    for reference in references:
        target: Any = document
        for name in reference.removeprefix("#/").split("/"):
            target = target[name]


def test_a_message_is_valid_by_the_asyncapi_document_just_when_it_is_right() -> None:
    document = export.exports()["asyncapi.json"]
    payload = document["components"]["messages"]["primes.count"]["payload"]
    validator = Draft202012Validator({**payload, "components": document["components"]})
    assert validator.is_valid({"n": 100})
    assert not validator.is_valid({"n": -1})
    assert not validator.is_valid({})


@pytest.mark.parametrize("module", ["schemas.job", "schemas.cloudevent", "schemas.payloads", "schemas.result"])
def test_a_producer_can_import_the_models_without_the_daemon(module: str) -> None:
    ours = "[name for name in sys.modules if name.split('.')[0] in ('consumer', 'config', 'aio_pika')]"
    script = f"import sys, {module}; print({ours})"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def refs(node: Any) -> Any:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from refs(item)


def test_the_export_is_the_same_every_time(tmp_path: Path) -> None:
    export.write(tmp_path)
    first = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    export.write(tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == first
    assert all(json.loads(content) for content in first.values())
