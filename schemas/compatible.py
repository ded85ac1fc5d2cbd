"""Whether a schema still takes what its older version took: `python -m schemas.compatible OLD NEW`.

It errs on the strict side: what it can't compare it reports. One thing it allows on purpose: a new optional
field, although an older message may have used that name for something else.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_AT_LEAST = ("minLength", "minItems", "minProperties", "minContains")
_AT_MOST = ("maxLength", "maxItems", "maxProperties", "maxContains")
_MUST_STAY = [
    "pattern",
    "format",
    "multipleOf",
    "uniqueItems",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "patternProperties",
    "dependentRequired",
    "dependentSchemas",
    "prefixItems",
    "unevaluatedProperties",
    "contentMediaType",
    "contentSchema",
]
_ALL_TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})

Schema = Any
"""A schema is an object, True or False."""


def breaks(old: Schema, new: Schema) -> list[str]:
    """One sentence for each change that refuses a message which used to be right."""
    return list(_Comparison(old, new).compare(old, new, ""))


class _Comparison:
    def __init__(self, old: Schema, new: Schema) -> None:
        self._old_root = old
        self._new_root = new
        self._under_way: set[tuple[str, str]] = set()

    def compare(self, old: Schema, new: Schema, path: str) -> Iterator[str]:
        """A pair that is met again inside itself (a model that holds itself) is being answered already."""
        pair = (json.dumps(old, sort_keys=True), json.dumps(new, sort_keys=True))
        if pair in self._under_way:
            return
        self._under_way.add(pair)
        yield from self._compare_resolved(_resolved(self._old_root, old), _resolved(self._new_root, new), path)
        self._under_way.discard(pair)

    def _compare_resolved(self, old: Schema, new: Schema, path: str) -> Iterator[str]:
        if old is False or new is True:
            return
        if new is False:
            yield f"{path or '/'}: is refused altogether"
            return
        old = {} if old is True else old
        if _alternatives(old) != [old] or _alternatives(new) != [new]:
            yield from self._compare_alternatives(old, new, path)
            return
        yield from (f"{path or '/'}: {change}" for change in _narrowed(old, new))
        yield from self._compare_inside(old, new, path)

    def _compare_alternatives(self, old: Schema, new: Schema, path: str) -> Iterator[str]:
        """Each way to be right must still be one of the ways to be right."""
        for former in _alternatives(old):
            tries = [list(self.compare(former, present, path)) for present in _alternatives(new)]
            if all(tries):
                yield from min(tries, key=len)

    def _compare_inside(self, old: Schema, new: Schema, path: str) -> Iterator[str]:
        if "object" in _types(old) and "object" in _types(new):
            yield from self._compare_members(old, new, path)
        if "array" in _types(old) and "array" in _types(new) and "items" in new:
            yield from self.compare(old.get("items", True), new["items"], f"{path}/*")

    def _compare_members(self, old: Schema, new: Schema, path: str) -> Iterator[str]:
        for name in new.get("required", []):
            if name not in old.get("required", []):
                yield f"{path}/{name}: is required and was not"
        others = new.get("additionalProperties", True)
        for name, member in old.get("properties", {}).items():
            yield from self.compare(member, new.get("properties", {}).get(name, others), f"{path}/{name}")
        yield from self.compare(old.get("additionalProperties", True), others, f"{path}/(any other name)")


def _resolved(root: Schema, schema: Schema) -> Schema:
    while isinstance(schema, dict) and "$ref" in schema:
        target = root
        for name in schema["$ref"].removeprefix("#/").split("/"):
            target = target[name.replace("~1", "/").replace("~0", "~")]
        schema = {**target, **{name: value for name, value in schema.items() if name != "$ref"}}
    return schema


def _alternatives(schema: Schema) -> list[Schema]:
    """The ways to be right; what stands beside the list holds for each of them."""
    if not isinstance(schema, dict):
        return [schema]
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            beside = {name: value for name, value in schema.items() if name != keyword}
            return [{**beside, **way} if isinstance(way, dict) else way for way in schema[keyword]]
    return [schema]


def _narrowed(old: Schema, new: Schema) -> Iterator[str]:
    if gone := _types(old) - _types(new):
        yield f"type {', '.join(sorted(gone))} is not allowed any more"
        return
    if (values := _values(new)) is not None:
        former = _values(old)
        if former is None:
            yield "only listed values are allowed now"
        elif not {json.dumps(value) for value in former} <= {json.dumps(value) for value in values}:
            yield "a value was removed from the list"
    yield from _tightened(old, new)


def _tightened(old: Schema, new: Schema) -> Iterator[str]:
    if _values(old) is not None:
        return  # the list is compared value by value
    if _floor(new) > _floor(old) or _ceiling(new) < _ceiling(old):
        yield "the range of numbers became smaller"
    for keyword in _AT_LEAST:
        if new.get(keyword, 0) > old.get(keyword, 0):
            yield f"{keyword} grew to {new[keyword]}"
    for keyword in _AT_MOST:
        if new.get(keyword, float("inf")) < old.get(keyword, float("inf")):
            yield f"{keyword} shrank to {new[keyword]}"
    for keyword in _MUST_STAY:
        if keyword in new and new[keyword] != old.get(keyword):
            yield f"{keyword} is new or changed"


def _types(schema: Schema) -> frozenset[str]:
    """With every integer counted among the numbers, so that number may replace integer and not the other way."""
    named = schema.get("type")
    if named is None and (values := _values(schema)) is not None:
        types = {_type_of(value) for value in values}
    else:
        types = set(_ALL_TYPES) if named is None else {named} if isinstance(named, str) else set(named)
    return frozenset(types | {"integer"} if "number" in types else types)


def _type_of(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _values(schema: Schema) -> list[Any] | None:
    return [schema["const"]] if "const" in schema else schema.get("enum")


def _floor(schema: Schema) -> tuple[float, bool]:
    """The lowest number, and whether it is excluded; for integers the next one is the same bound."""
    bounds = [(schema.get("minimum", float("-inf")), False)]
    if "exclusiveMinimum" in schema:
        above = schema["exclusiveMinimum"]
        bounds.append((above + 1, False) if schema.get("type") == "integer" else (above, True))
    return max(bounds)


def _ceiling(schema: Schema) -> tuple[float, bool]:
    """Likewise; True stands for included, so that the lower bound of two compares as the smaller."""
    bounds = [(schema.get("maximum", float("inf")), True)]
    if "exclusiveMaximum" in schema:
        below = schema["exclusiveMaximum"]
        bounds.append((below - 1, True) if schema.get("type") == "integer" else (below, False))
    return min(bounds)


def main(arguments: list[str]) -> str | None:
    if len(arguments) != 2:  # noqa: PLR2004 - OLD and NEW
        return "usage: python -m schemas.compatible OLD NEW"
    old, new = (json.loads(Path(name).read_bytes()) for name in arguments)
    return "\n".join(breaks(old, new)) or None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
