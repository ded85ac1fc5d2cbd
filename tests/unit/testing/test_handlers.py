import sys
from pathlib import Path
from typing import Any

import pytest

from consumer import job
from consumer.testing.handlers import kind_of, kinds_of
from consumer.worker.loading import LoadError


@job("handlers.plain")
def plain(payload: int) -> int:
    return payload


@job("handlers.one")
@job("handlers.other")
def of_two_kinds(payload: int) -> int:
    return payload


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of job modules: `shop`, which has two, and imports `bare`, which is beside it."""
    package = tmp_path / "shop"
    package.mkdir()
    head = "from consumer import job\n"
    (package / "__init__.py").write_text("from shop import orders\nimport bare\n")
    (package / "orders.py").write_text(head + "@job('shop.order')\ndef order(payload: int) -> None: ...\n")
    (tmp_path / "bare.py").write_text(head + "@job('bare.one')\ndef one(payload: int) -> None: ...\n")
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_decorated_function_needs_no_list_of_modules() -> None:
    assert kind_of(plain).offer.policy.kind == "handlers.plain"


def test_a_function_below_a_decorator_of_somebody_elses_is_found() -> None:
    def logged(payload: int) -> int:
        return plain(payload)

    logged.__wrapped__ = plain  # type: ignore[attr-defined] # as functools.wraps does
    assert kind_of(logged).function is plain


def test_a_function_that_is_no_handler_is_told_how_to_become_one() -> None:
    with pytest.raises(TypeError, match=r"test_handlers.fn is no handler: decorate it with @job\(\"kind\"\)"):
        kind_of(fn)


def fn(payload: int) -> int:
    return payload


@pytest.mark.parametrize("wanted", [None, "handlers.plain", sys])
def test_what_is_no_function_is_told_what_a_handler_is_and_how_modules_are_named(wanted: Any) -> None:
    with pytest.raises(TypeError, match=r" is no handler: give the decorated function, or its module as modules=\"…\""):
        kinds_of([wanted], ())


@pytest.mark.parametrize("modules", [sys, [sys]])
def test_modules_are_given_by_their_names(modules: Any) -> None:
    with pytest.raises(TypeError, match=r"by their names, such as \"shop\", and not as <module 'sys'"):
        kinds_of((), modules)


def test_a_function_of_two_kinds_is_named_by_its_kind() -> None:
    with pytest.raises(ValueError, match=r"several kinds \('handlers.other', 'handlers.one'\): name the kind"):
        kind_of(of_two_kinds)
    assert kind_of("handlers.one").function is of_two_kinds


def test_a_kind_is_found_by_its_name_where_its_module_was_imported() -> None:
    assert kind_of("handlers.plain").function is plain


def test_a_kind_that_nobody_declares_is_met_with_those_that_are(shop: Path) -> None:
    with pytest.raises(LookupError, match=r"no handler of kind 'shop.odd' is declared in shop: .*'shop.order'"):
        kind_of("shop.odd", ["shop"])


def test_a_kind_of_another_module_is_met_with_the_modules_name(shop: Path) -> None:
    with pytest.raises(LookupError, match=r"'bare.one' is declared by bare.one: name its module"):
        kind_of("bare.one", ["shop"])


def test_modules_are_imported_and_all_kinds_in_them_found_however_often(shop: Path) -> None:
    for _ in range(2):
        assert set(kinds_of((), "shop")) == {"shop.order"}
        assert set(kinds_of((), ["shop", "bare"])) == {"shop.order", "bare.one"}


def test_what_other_tests_declared_is_not_in_the_way(shop: Path) -> None:
    def declare() -> Any:
        @job("shop.order")
        def other(payload: str) -> None: ...

        return other

    first, second = declare(), declare()
    assert kind_of("shop.order", ["shop"]).offer.schema == {"type": "integer"}
    assert kind_of(first).function is first
    assert kinds_of([second], ())["shop.order"].function is second


def test_two_handlers_of_one_kind_are_refused_by_both_names(shop: Path) -> None:
    @job("shop.order")
    def mine(payload: int) -> None: ...

    with pytest.raises(ValueError, match=r"'shop.order' has two handlers, .*mine and shop.orders.order: choose one"):
        kinds_of([mine], ["shop"])
    with pytest.raises(ValueError, match=r"'shop.order' has two handlers, "):
        kind_of("shop.order")


def test_no_handler_at_all_is_the_tests_mistake() -> None:
    with pytest.raises(TypeError, match="name the handlers, or the modules that declare them"):
        kinds_of((), ())


def test_a_handler_that_the_daemon_would_refuse_is_refused_in_the_same_words() -> None:
    @job("handlers.bare")
    def bare(payload) -> None: ...  # type: ignore[no-untyped-def] # noqa: ANN001

    with pytest.raises(LoadError, match="doesn't say what its payload is"):
        kind_of(bare)


def test_an_import_that_fails_fails_with_its_own_error() -> None:
    with pytest.raises(ModuleNotFoundError, match="there_is_no_such_module"):
        kinds_of((), ["there_is_no_such_module"])
