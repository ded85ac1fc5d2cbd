import sys
from pathlib import Path

import pydantic  # noqa: F401 - it must be here before what a test imports is forgotten
import pytest

from consumer.worker import handler, loading
from consumer.worker.context import JobContext
from consumer.worker.loading import LoadError, load
from tests.support.stages import Stage

HEADER = "from typing import Any\nfrom consumer import JobContext, job\n"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of job modules; what they declare and import is forgotten afterwards."""
    fresh: list[handler.Handler] = []
    monkeypatch.setattr(handler, "declared", fresh)
    monkeypatch.setattr(loading, "declared", fresh)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


def refusal(shop: Path, **modules: str) -> str:
    for name, source in modules.items():
        (shop / f"{name}.py").write_text(HEADER + source)
    with pytest.raises(LoadError) as error:
        load(list(modules), [str(shop)])
    return str(error.value)


def test_a_handler_is_ready_to_check_a_payload_and_to_be_called(shop: Path) -> None:
    (shop / "good.py").write_text(HEADER + "@job('a')\ndef a(payload: int) -> int:\n    return payload + 1\n")
    kind = load(["good"], [str(shop)])["a"]
    assert kind.context_name is None
    assert kind.validate(b"41") == 41
    assert kind.call(41, JobContext("a", "k", 1, None, 0, Stage())) == 42
    assert kind.offer.schema == {"type": "integer"}


@pytest.mark.parametrize("parameter", ["context", "context: JobContext", "about: JobContext", "*, context"])
def test_a_context_is_given_to_whoever_asks_for_it(shop: Path, parameter: str) -> None:
    (shop / "good.py").write_text(
        f"{HEADER}@job('a')\ndef a(payload: Any, {parameter}) -> str:\n    return str(locals())\n"
    )
    kind = load(["good"], [str(shop)])["a"]
    assert "JobContext(kind='a'" in str(kind.call(1, JobContext("a", "k", 1, None, 0, Stage())))


def test_handlers_of_a_submodule_count(shop: Path) -> None:
    (shop / "package").mkdir()
    (shop / "package" / "__init__.py").write_text("from package import inner\n")
    (shop / "package" / "inner.py").write_text(HEADER + "@job('inner')\ndef inner(payload: Any) -> None: ...\n")
    assert list(load(["package"], [str(shop)])) == ["inner"]


def test_a_kind_declared_twice_names_both_places(shop: Path) -> None:
    source = "@job('same')\ndef f(payload: Any) -> None: ...\n"
    assert refusal(shop, one=source, two=source) == (
        "kind 'same' is declared twice, by one.f and by two.f: rename one of them"
    )


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("async def f(payload: Any): yield", "yields: a handler returns its result"),
        ("def f(payload: Any): yield", "yields: a handler returns its result"),
        ("def f(): ...", "must take (payload) or (payload, context), and takes no payload"),
        ("def f(*, payload: Any): ...", "and takes no payload"),
        ("def f(payload: Any, other): ...", "and also wants 'other'"),
        ("def f(payload: Any, context, /): ...", "'context' can't be given by name"),
        ("def f(payload): ...", "doesn't say what its payload is: annotate 'payload'"),
        ("def f(payload: 'Unknown'): ...", "has an annotation that can't be read: NameError"),
        ("def f(payload: open): ...", "has a payload annotation that pydantic can't check"),
        ("def f(payload: type(sys)): ...", "can't be imported: NameError"),
    ],
)
def test_a_handler_that_cant_be_called_is_explained(shop: Path, source: str, said: str) -> None:
    told = refusal(shop, bad=f"@job('kind')\n{source}\n")
    assert said in told
    assert "bad" in told
    assert "\n" not in told


def test_modules_without_handlers_are_an_error(shop: Path) -> None:
    assert refusal(shop, empty="") == 'no handler is declared in empty: decorate a function with @job("kind")'


def test_an_import_error_names_module_line_and_error_in_one_line(shop: Path) -> None:
    told = refusal(shop, bad="\nraise ValueError('two\\nlines')\n")
    assert told == f"job module 'bad' can't be imported: ValueError: two lines ({shop}/bad.py, line 4)"


def test_a_module_that_is_not_there_is_an_error(shop: Path) -> None:
    with pytest.raises(LoadError) as error:
        load(["nowhere"], [str(shop)])
    assert str(error.value) == (
        "job module 'nowhere' can't be imported: ModuleNotFoundError: No module named 'nowhere'; install it, or name "
        "its folder in jobs.path"
    )


def test_a_file_for_a_module_is_told_to_be_one(shop: Path) -> None:
    (shop / "order.py").write_text(HEADER)
    with pytest.raises(LoadError, match=r"; jobs\.modules wants 'order', without '\.py'$"):
        load(["order.py"], [str(shop)])


def test_no_modules_are_an_error(shop: Path) -> None:
    with pytest.raises(LoadError, match=r"^jobs\.modules is empty: name the modules that have handlers$"):
        load([], [str(shop)])


def test_a_wrong_declaration_is_told_with_the_line_that_has_it(shop: Path) -> None:
    told = refusal(shop, bad="\n@job('kind', timeout=-3)\ndef f(payload: Any): ...\n")
    assert told.endswith(f"it must be above 0, and have an end ({shop}/bad.py, line 4)")
