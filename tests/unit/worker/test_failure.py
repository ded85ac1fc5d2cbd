import urllib.error
from email.message import Message
from secrets import token_hex

import pytest
from pydantic import BaseModel, ValidationError

from consumer import DependencyDown, Reject, Retry
from consumer.worker.failure import TEXT_LIMIT, TRACEBACK_LIMIT, Refused, describe


class Account(BaseModel):
    pin: int
    owner: str


SECRET = token_hex(8)
"""Nowhere in the source lines that a traceback quotes."""


def raised(error: BaseException) -> BaseException:
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


def test_an_error_is_told_by_type_text_and_bases() -> None:
    told = describe(raised(KeyError("x")), None)
    assert (told["code"], told["type"], told["message"]) == ("attempts_exhausted", "KeyError", "'x'")
    assert told["types"][:2] == ["builtins.KeyError", "builtins.LookupError"]
    assert told["traceback"].endswith("raise error\nKeyError: 'x'\n")


@pytest.mark.parametrize(("after", "told"), [(3, 3.0), (None, None), (float("nan"), None), (-1, None), ("soon", None)])
def test_the_advised_wait_is_told_where_it_is_one(after: float | None, told: float | None) -> None:
    said = describe(Retry("busy", after), None)
    assert (said["retryable"], said["after"]) == (True, told)


def test_a_rejection_is_final() -> None:
    said = describe(Reject("no"), None)
    assert (said["code"], said["retryable"]) == ("rejected", False)


def test_a_refusal_has_no_traceback_for_it_is_no_fault_of_the_code() -> None:
    said = describe(raised(Refused("result_too_large", "big")), None)
    assert (said["code"], said["message"], said["traceback"]) == ("result_too_large", "big", "")


def test_whatever_a_run_raised_after_its_time_it_was_a_timeout() -> None:
    said = describe(raised(OSError("half-way")), "too long")
    assert (said["code"], said["message"], said["type"]) == ("execution_timeout", "too long", "OSError")


def test_pydantics_errors_tell_place_and_rule_and_never_the_value() -> None:
    with pytest.raises(ValidationError) as caught:
        Account.model_validate({"pin": SECRET})
    said = describe(caught.value, None)
    assert said["message"] == "pin: int_parsing; owner: missing"
    assert SECRET not in str(said)


def test_values_stay_out_of_the_causes_too() -> None:
    try:
        try:
            Account.model_validate({"pin": SECRET})
        except ValidationError as error:
            raise RuntimeError("odd account") from error
    except RuntimeError as error:
        said = describe(error, None)
    assert "pin: int_parsing" in said["traceback"]
    assert "RuntimeError: odd account" in said["traceback"]
    assert SECRET not in str(said).replace('secret-pin"})', "")


def test_texts_are_bounded_and_printable() -> None:
    said = describe(raised(ValueError("\ud800\0" + "x" * 100_000)), None)
    assert said["message"].startswith("\\ud800\\0x")
    assert len(said["message"]) <= TEXT_LIMIT + 10
    assert len(said["traceback"]) <= TRACEBACK_LIMIT + 10


def test_an_error_whose_text_cant_be_had_is_told_all_the_same() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise SystemExit(1)

    assert describe(Mute(), None)["message"] == "(its text can't be had: SystemExit)"


def test_a_long_chain_of_errors_ends() -> None:
    error = ValueError("first")
    error.__cause__ = error
    assert len(describe(error, None)["traceback"]) < TRACEBACK_LIMIT


def test_causes_that_are_hostile_take_no_child_along() -> None:
    class Empty(Exception):
        def __bool__(self) -> bool:
            raise SystemExit(1)

    class Hidden(Exception):
        @property
        def __suppress_context__(self) -> bool:  # type: ignore[override]
            raise SystemExit(1)

    error = ValueError("outer")
    error.__cause__ = Empty("inner")
    assert "Empty: inner\n\nwhich led to\n\nValueError: outer" in describe(error, None)["traceback"]
    assert describe(Hidden("x"), None)["traceback"] == "(no traceback: SystemExit)"


def test_a_text_and_a_name_may_be_anything_but_end_up_printable() -> None:
    class Text(str):
        __slots__ = ()

        def __getitem__(self, _: object) -> str:
            raise SystemExit(1)

    class Odd(Exception):
        def __str__(self) -> str:
            return Text("x")

    Odd.__module__, Odd.__qualname__ = "m\ud800", "q\0"
    told = describe(Odd(), None)
    assert (told["type"], told["message"]) == ("m\\ud800.q\\0", "(its text can't be had: SystemExit)")


def test_a_recursion_without_end_is_told_by_its_end_and_without_looking_at_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dive(depth: int) -> None:
        if depth == 0:
            raise ValueError("ground")
        dive(depth - 1)

    seen: list[object] = []
    monkeypatch.setattr("linecache.lazycache", lambda *args: seen.append(args))
    with pytest.raises(ValueError, match="ground") as caught:
        dive(500)
    told = describe(caught.value, None)["traceback"]
    assert told.endswith('raise ValueError("ground")\nValueError: ground\n')
    assert len(seen) <= 50


def test_a_dependency_that_is_down_is_told_by_its_name() -> None:
    said = describe(DependencyDown("partner\0api", "30"), None)
    assert (said["dependency"], said["after"], said["message"]) == ("partner\\0api", 30.0, "partner\\0api is down")
    assert "retryable" not in said


def test_a_subclass_that_forgets_its_base_is_told_as_what_it_is() -> None:
    class PartnerDown(DependencyDown):
        def __init__(self) -> None:
            self.asked = 3

    class Busy(Retry):
        def __init__(self) -> None:
            self.asked = 3

    down, busy = describe(raised(PartnerDown()), None), describe(raised(Busy()), None)
    assert (down["dependency"], down["after"]) == ("a dependency", None)
    assert (busy["retryable"], busy["after"]) == (True, None)


def test_an_error_that_raises_when_it_is_looked_at_is_told_all_the_same() -> None:
    class Hostile(DependencyDown):
        @property
        def after(self) -> float:
            raise SystemExit(1)

        @after.setter
        def after(self, _: float) -> None: ...

    said = describe(raised(Hostile("x")), None)
    assert (said["code"], said["type"]) == ("attempts_exhausted", "SystemExit")
    assert said["message"] == "(the job's error can't be told: reading it raised this)"


def test_an_http_error_is_told_with_its_status_and_the_wait_that_the_server_wants() -> None:
    error = urllib.error.HTTPError("http://partner.test/", 503, "no", Message(), None)
    error.headers["Retry-After"] = "7"
    said = describe(raised(error), None)
    assert (said["http_status"], said["after"]) == (503, 7.0)
