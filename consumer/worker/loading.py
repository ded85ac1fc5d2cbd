"""Imports the job modules, once, in the zygote, and makes each handler ready to be called."""

import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

from consumer.worker.catalogue import Offer, Sort
from consumer.worker.context import JobContext
from consumer.worker.handler import Handler, declared, job

_ERROR_LENGTH = 500
_NOT_THEIRS = {__file__, importlib.__file__, job.__code__.co_filename}
_GIVEN_FIRST = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class LoadError(Exception):
    """One sentence about what is wrong with the job modules."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A handler, ready: `validate` turns the JSON text of a payload into what the handler was annotated with."""

    function: Callable[..., object]
    validate: Callable[[bytes], Any]
    context_name: str | None
    offer: Offer

    def call(self, payload: Any, context: JobContext) -> object:
        if self.context_name is None:
            return self.function(payload)
        return self.function(payload, **{self.context_name: context})


def load(modules: Sequence[str], path: Sequence[str]) -> dict[str, Kind]:
    """Import `modules`, looking in `path` before anywhere else. Raises LoadError."""
    if not modules:
        raise LoadError("jobs.modules is empty: name the modules that have handlers")
    sys.path[:0] = path
    for name in modules:
        _import(name)
    if not declared:
        raise LoadError(f'no handler is declared in {", ".join(modules)}: decorate a function with @job("kind")')
    kinds: dict[str, Kind] = {}
    places: dict[str, str] = {}
    for handler in declared:
        kind = handler.policy.kind
        if kind in kinds:
            raise LoadError(
                f"kind {kind!r} is declared twice, by {places[kind]} and by {handler.place}: rename one of them"
            )
        kinds[kind], places[kind] = prepare(handler), handler.place
    return kinds


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except BaseException as error:  # noqa: BLE001 - a module may also call sys.exit
        missing = isinstance(error, ModuleNotFoundError) and error.name == name
        way_out = _way_to_find(name) if missing else ""
        raise LoadError(f"job module {name!r} can't be imported: {_one_line(error)}{way_out}") from None


def _way_to_find(name: str) -> str:
    if name.endswith(".py"):
        return f"; jobs.modules wants {name.removesuffix('.py')!r}, without '.py'"
    return "; install it, or name its folder in jobs.path"


def _one_line(error: BaseException) -> str:
    """Type, text and place of an error; the place is the innermost line that isn't ours or the import system's."""
    text = " ".join(f"{type(error).__name__}: {error}".split())[:_ERROR_LENGTH]
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen") and frame.filename not in _NOT_THEIRS
    ]
    return f"{text} ({frames[-1].filename}, line {frames[-1].lineno})" if frames else text


def prepare(handler: Handler) -> Kind:
    """Make one handler ready. Raises LoadError."""
    name = f"handler {handler.place} of kind {handler.policy.kind!r}"
    if inspect.isasyncgenfunction(handler.function) or inspect.isgeneratorfunction(handler.function):
        raise LoadError(f"{name} yields: a handler returns its result")
    payload, context_name = _parameters(handler, name)
    validate, schema = _payload_type(handler, payload, name)
    sort = Sort.IO if inspect.iscoroutinefunction(handler.function) else Sort.CPU
    return Kind(handler.function, validate, context_name, Offer(handler.policy, schema, sort))


def _parameters(handler: Handler, name: str) -> tuple[str, str | None]:
    """The names of the payload's parameter and, where there is one, of the context's."""
    wanted = f"{name} must take (payload) or (payload, context)"
    parameters = [*inspect.signature(handler.function).parameters.values()]
    if not parameters or parameters[0].kind not in _GIVEN_FIRST:
        raise LoadError(f"{wanted}, and takes no payload")
    hints = _hints(handler, name)
    context_name = None
    for parameter in parameters[1:]:
        if parameter.name == "context" or hints.get(parameter.name) is JobContext:
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise LoadError(f"{wanted}, and {parameter.name!r} can't be given by name")
            context_name = parameter.name
        elif parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            raise LoadError(f"{wanted}, and also wants {parameter.name!r}")
    return parameters[0].name, context_name


def _payload_type(handler: Handler, parameter: str, name: str) -> tuple[Callable[[bytes], Any], dict[str, Any]]:
    hints = _hints(handler, name)
    if parameter not in hints:
        raise LoadError(
            f"{name} doesn't say what its payload is: annotate {parameter!r} with a pydantic model, or with any "
            "type that pydantic can check"
        )
    from pydantic import TypeAdapter  # noqa: PLC0415 - the job modules had their turn first

    try:
        adapter = TypeAdapter(hints[parameter])
        return adapter.validate_json, adapter.json_schema()
    except Exception as error:  # noqa: BLE001 - pydantic has many ways to say no
        raise LoadError(f"{name} has a payload annotation that pydantic can't check: {_one_line(error)}") from None


def _hints(handler: Handler, name: str) -> dict[str, Any]:
    try:
        return get_type_hints(inspect.unwrap(handler.function), include_extras=True)
    except Exception as error:  # noqa: BLE001 - evaluating an annotation runs the user's code
        raise LoadError(f"{name} has an annotation that can't be read: {_one_line(error)}") from None
