import json
from pathlib import Path
from typing import Any, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict, Field, create_model

from schemas.compatible import breaks, main


def model(annotation: Any, default: Any = ...) -> dict[str, Any]:
    return create_model("Payload", field=(annotation, default)).model_json_schema()


class Open(BaseModel):
    n: int


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    n: int


class Tree(BaseModel):
    value: int
    branches: list["Tree"] = []


class PickyTree(BaseModel):
    value: int = Field(ge=0)
    branches: list["PickyTree"] = []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (model(int), model(int)),
        (model(int), model(float)),
        (model(int), model(int | None)),
        (model(int), model(int | str)),
        (model(int), model(Any)),
        (model(int), model(int, 5)),
        (model(int), {"type": "object"}),
        (model(Literal["a"]), model(Literal["a", "b"])),
        (model(Literal["a", "b"]), model(str)),
        (model(int, Field(ge=1)), model(int, Field(gt=0))),
        (model(int, Field(ge=1, le=5)), model(int, Field(ge=0, le=6))),
        (model(str, Field(min_length=2, max_length=3)), model(str, Field(min_length=1, max_length=4))),
        (model(str, Field(pattern="^a")), model(str)),
        (model(list[int]), model(list[float])),
        (model(dict[str, int]), model(dict[str, float])),
        (model(Open), model(Optional[Open])),  # noqa: UP045 - reads as the others
        (Closed.model_json_schema(), Open.model_json_schema()),
        (Open.model_json_schema(), create_model("Open", __base__=Open, extra=(int | None, None)).model_json_schema()),
        (Tree.model_json_schema(), Tree.model_json_schema()),
        (PickyTree.model_json_schema(), Tree.model_json_schema()),
        (False, model(int)),
        ({}, True),
    ],
)
def test_a_change_that_takes_all_that_it_took_is_compatible(old: Any, new: Any) -> None:
    assert breaks(old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            Open.model_json_schema(),
            create_model("O", __base__=Open, m=(int, ...)).model_json_schema(),
            "/m: is required",
        ),
        (model(int, 5), model(int), "/field: is required"),
        (model(float), model(int), "/field: type number"),
        (model(int | None), model(int), "/field: type null"),
        (model(int | str), model(int), "/field: type string"),
        (model(Any), model(str), "/field: type"),
        (model(str), model(Literal["a"]), "only listed values"),
        (model(Literal["a", "b"]), model(Literal["a"]), "removed from the list"),
        (model(Literal["a", "b"]), model(Literal["b", "c"]), "removed from the list"),
        (model(int), model(int, Field(ge=0)), "range of numbers"),
        (model(int, Field(ge=0)), model(int, Field(gt=0)), "range of numbers"),
        (model(float, Field(ge=0)), model(float, Field(gt=0)), "range of numbers"),
        (model(float, Field(le=9)), model(float, Field(lt=9)), "range of numbers"),
        (model(int, Field(le=9)), model(int, Field(le=8)), "range of numbers"),
        (model(str), model(str, Field(min_length=1)), "minLength grew"),
        (model(str), model(str, Field(max_length=9)), "maxLength shrank"),
        (model(list[int]), model(list[int], Field(max_length=9)), "maxItems shrank"),
        (model(str), model(str, Field(pattern="^a")), "pattern is new"),
        (model(str), model(Path), "format is new"),
        (model(list[float]), model(list[int]), "/field/*: type number"),
        (model(list), model(list[int]), "/field/*: type"),
        (model(dict[str, float]), model(dict[str, int]), "any other name"),
        (Open.model_json_schema(), Closed.model_json_schema(), "any other name"),
        (
            Closed.model_json_schema(),
            create_model("C", __config__={"extra": "forbid"}).model_json_schema(),
            "/n: is refused",
        ),
        (model(Open), model(Closed), "/field/(any other name)"),
        (Tree.model_json_schema(), PickyTree.model_json_schema(), "range of numbers"),
        (model(int), False, "refused altogether"),
    ],
)
def test_a_change_that_refuses_an_older_message_is_named(old: Any, new: Any, says: str) -> None:
    assert any(says in change for change in breaks(old, new)), breaks(old, new)


SCALARS = st.one_of(
    st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "number", "boolean", "null"])}),
    st.fixed_dictionaries({"type": st.just("integer"), "minimum": st.integers(-2, 2)}),
    st.fixed_dictionaries({"type": st.just("number"), "exclusiveMaximum": st.integers(-2, 2)}),
    st.fixed_dictionaries({"enum": st.lists(st.sampled_from(["a", 1, None]), min_size=1, unique=True)}),
    st.fixed_dictionaries({"type": st.just("string"), "maxLength": st.integers(0, 2)}),
)
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.fixed_dictionaries({"a": inner}),
                "required": st.lists(st.just("a"), max_size=1),
            }
        ),
    ),
    max_leaves=3,
)
VALUES = st.recursive(
    st.sampled_from(["", "a", "abc", 0, 1, -2, 0.5, 2, True, None]),
    lambda inner: st.lists(inner, max_size=2) | st.fixed_dictionaries({}, optional={"a": inner}),
    max_leaves=3,
)


@given(SCHEMAS, SCHEMAS, VALUES)
def test_no_value_that_was_right_is_wrong_after_a_change_called_compatible(old: Any, new: Any, value: Any) -> None:
    if not breaks(old, new) and Draft202012Validator(old).is_valid(value):
        assert Draft202012Validator(new).is_valid(value)


def test_the_command_compares_two_files(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps(model(int)))
    new.write_text(json.dumps(model(str)))
    assert main([str(old), str(old)]) is None
    assert main([str(old), str(new)]) == "/field: type integer is not allowed any more"
    assert "usage" in str(main([]))
