"""Jobs with results and errors that are hard to carry."""

from typing import Any

from pydantic import BaseModel, TypeAdapter

from consumer import job


class Custom(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")
        self.lock = open  # what pickle can't take back needs no more than these arguments


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Point(BaseModel):
    x: int


@job("unpicklable", timeout=10)
def unpicklable(payload: Any) -> None:
    raise Custom(1, 2)


@job("unspeakable", timeout=10)
def unspeakable(payload: Any) -> None:
    raise Unspeakable


@job("long_error", timeout=10)
def long_error(payload: Any) -> None:
    raise ValueError("\ud800\0" + "x" * 10_000_000)


@job("validation_error", timeout=10)
def validation_error(payload: Any) -> None:
    try:
        TypeAdapter(dict[str, int]).validate_python({"pin": payload})
    except ValueError as error:
        raise RuntimeError("the account is odd") from error


@job("huge", timeout=30)
def huge(payload: int) -> str:
    return "x" * payload


@job("nan", timeout=10)
def nan(payload: Any) -> list[float]:
    return [float("nan")]


@job("surrogate", timeout=10)
def surrogate(payload: Any) -> str:
    return "\ud800"


@job("set", timeout=10)
def a_set(payload: Any) -> set[int]:
    return {1}


@job("circle", timeout=10)
def circle(payload: Any) -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@job("deep", timeout=10)
def deep(payload: Any) -> list[Any]:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    return nested


@job("model", timeout=10)
def model(payload: Any) -> dict[str, Any]:
    return {"points": [Point(x=1), Point(x=2)]}
