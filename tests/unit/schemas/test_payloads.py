"""Children must not import `schemas`, so a built-in kind has two models: the producer's and the handler's."""

from typing import Any

import pytest
from pydantic import BaseModel

from consumer.jobs import primes, text
from schemas.payloads import PAYLOADS

HANDLED: dict[str, type[BaseModel]] = {"primes.count": primes.Range, "text.digest": text.Text}
FOR_PEOPLE = ("title", "description")


def rules(schema: Any) -> Any:
    """The schema without what only people read."""
    if not isinstance(schema, dict):
        return schema
    return {name: rules(value) for name, value in schema.items() if name not in FOR_PEOPLE}


def test_every_payload_for_producers_has_a_handler() -> None:
    assert HANDLED.keys() == PAYLOADS.keys()


@pytest.mark.parametrize("kind", sorted(PAYLOADS))
def test_what_producers_are_told_is_what_the_handler_takes(kind: str) -> None:
    assert rules(PAYLOADS[kind].model_json_schema()) == rules(HANDLED[kind].model_json_schema())
