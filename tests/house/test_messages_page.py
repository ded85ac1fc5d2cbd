import re
from pathlib import Path

import pytest

from consumer.core.decode import MAX_KEY, MAX_KIND, DecodeRules
from consumer.core.strict_json import MAX_DIGITS
from schemas import amqp, headers
from schemas.codes import Code

PAGE = (Path(__file__).parents[2] / "docs" / "messages.md").read_text("utf-8")


def test_the_page_for_producers_lists_every_code_once_and_no_other() -> None:
    refusals = PAGE.split("## Refusals")[1].split("## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", refusals, re.MULTILINE) == list(Code)


def test_the_page_for_producers_states_the_limits_that_hold() -> None:
    rules = DecodeRules()
    for limit in (
        f"{rules.max_bytes // 2**20} MiB",
        f"`message.max_depth`, {rules.max_depth} ",
        f"{MAX_DIGITS:,} digits",
        f"{MAX_KIND} characters",
        f"{MAX_KEY} characters",
    ):
        assert limit in PAGE
    assert (MAX_KIND, MAX_KEY) == (amqp.MAX_KIND, amqp.MAX_KEY)


def test_the_page_for_producers_names_the_headers_that_they_may_set() -> None:
    section = PAGE.split("## Optional headers")[1].split("## ")[0]
    told = re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE)
    assert told == [
        headers.SUBMITTED_AT,
        headers.DEADLINE,
        headers.NOT_BEFORE,
        headers.IDEMPOTENCY_KEY,
        headers.TRACEPARENT,
    ]


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
def test_the_examples_on_the_page_for_producers_are_python(block: str) -> None:
    compile(block, "docs/messages.md", "exec")
