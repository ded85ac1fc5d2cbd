"""Which handlers a test means: decorated functions themselves, or names of kinds and modules.

Everything that was ever decorated in this process is in one list, that of other tests too. So nothing here takes the
list as a whole, and what a test doesn't name is never in its way.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

from consumer.worker import handler
from consumer.worker.handler import Handler
from consumer.worker.loading import Kind, prepare

Function = Callable[..., Any]
Modules = Sequence[str] | str


def kind_of(wanted: Function | str, modules: Modules = ()) -> Kind:
    """The kind of a function, or the one of that name: in `modules`, or anywhere in this process."""
    if not isinstance(wanted, str):
        return prepare(_of(wanted))
    names = _imported(modules)
    candidates = _in(names) if names else _declared()
    return _one_each(each for each in candidates if each.policy.kind == wanted).get(wanted) or _missing(wanted, names)


def kinds_of(functions: Iterable[Function], modules: Modules) -> dict[str, Kind]:
    """Those of the functions, and all of the modules."""
    kinds = _one_each([*map(_of, functions), *_in(_imported(modules))])
    if not kinds:
        raise TypeError("there is nothing to run: name the handlers, or the modules that declare them")
    return kinds


def _imported(modules: Modules) -> tuple[str, ...]:
    names = (modules,) if isinstance(modules, str) or not isinstance(modules, Iterable) else tuple(modules)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f'modules are given by their names, such as "shop", and not as {name!r:.60}')
        import_module(name)
    return names


def _declared() -> list[Handler]:
    """Of a function that was defined again, as one within a test is each time, the latest."""
    return [*{(each.place, each.policy.kind): each for each in handler.declared}.values()]


def _in(modules: Iterable[str]) -> list[Handler]:
    """What the modules declare, and the modules within them; but not what functions in them do."""
    inside = tuple(f"{name}." for name in modules)
    return [each for each in _declared() if each.place.startswith(inside) and "<locals>" not in each.place]


def _of(function: Function) -> Handler:
    if not callable(function):
        raise TypeError(f'{function!r:.60} is no handler: give the decorated function, or its module as modules="…"')
    links = [*_unwrapped(function)]
    found = [each for each in handler.declared if any(each.function is link for link in links)]
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', repr(function))}"
    if not found:
        raise TypeError(f'{name} is no handler: decorate it with @job("kind")')
    if len(found) > 1:
        kinds = ", ".join(repr(each.policy.kind) for each in found)
        raise ValueError(f"{name} is declared for several kinds ({kinds}): name the kind instead of the function")
    return found[0]


def _unwrapped(function: Function | None) -> Iterator[Function]:
    """What was decorated for us may lie under the decorators of others."""
    while function is not None:
        yield function
        function = getattr(function, "__wrapped__", None)


def _one_each(handlers: Iterable[Handler]) -> dict[str, Kind]:
    chosen: dict[str, Handler] = {}
    for each in handlers:
        kind = each.policy.kind
        other = chosen.setdefault(kind, each)
        if other.function is not each.function:
            raise ValueError(
                f"kind {kind!r} has two handlers, {other.place} and {each.place}: choose one, by giving the function"
            )
    return {kind: prepare(each) for kind, each in chosen.items()}


def _missing(kind: str, modules: Sequence[str]) -> Kind:
    elsewhere = next((each.place for each in _declared() if each.policy.kind == kind), None)
    if elsewhere is not None:
        raise LookupError(f"kind {kind!r} is declared by {elsewhere}: name its module, or give the function itself")
    where = ", ".join(modules) or "this process, so far"
    known = ", ".join(sorted({repr(each.policy.kind) for each in (_in(modules) if modules else _declared())}))
    raise LookupError(f"no handler of kind {kind!r} is declared in {where}: there are {known or 'none'}")
