import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consumer.core.strict_json import StrictJsonError, canonical, loads

SUITE = Path(__file__).parents[4] / "shared" / "data" / "json-test-suite" / "test_parsing"

REFUSED_THOUGH_GRAMMATICAL = {
    "y_object_duplicated_key.json": "invalid_json",
    "y_object_duplicated_key_and_value.json": "invalid_json",
}
"""The grammar allows a name twice; two parsers then see two different values."""

LEFT_TO_THE_PARSER = {
    "i_number_double_huge_neg_exp.json": "parsed",
    "i_number_huge_exp.json": "invalid_json",
    "i_number_neg_int_huge_exp.json": "invalid_json",
    "i_number_pos_double_huge_exp.json": "invalid_json",
    "i_number_real_neg_overflow.json": "invalid_json",
    "i_number_real_pos_overflow.json": "invalid_json",
    "i_number_real_underflow.json": "parsed",
    "i_number_too_big_neg_int.json": "parsed",
    "i_number_too_big_pos_int.json": "parsed",
    "i_number_very_big_negative_int.json": "parsed",
    "i_object_key_lone_2nd_surrogate.json": "invalid_json",
    "i_string_1st_surrogate_but_2nd_missing.json": "invalid_json",
    "i_string_1st_valid_surrogate_2nd_invalid.json": "invalid_json",
    "i_string_UTF-16LE_with_BOM.json": "invalid_json",
    "i_string_UTF-8_invalid_sequence.json": "invalid_json",
    "i_string_UTF8_surrogate_U+D800.json": "invalid_json",
    "i_string_incomplete_surrogate_and_escape_valid.json": "invalid_json",
    "i_string_incomplete_surrogate_pair.json": "invalid_json",
    "i_string_incomplete_surrogates_escape_valid.json": "invalid_json",
    "i_string_invalid_lonely_surrogate.json": "invalid_json",
    "i_string_invalid_surrogate.json": "invalid_json",
    "i_string_invalid_utf-8.json": "invalid_json",
    "i_string_inverted_surrogates_U+1D11E.json": "invalid_json",
    "i_string_iso_latin_1.json": "invalid_json",
    "i_string_lone_second_surrogate.json": "invalid_json",
    "i_string_lone_utf8_continuation_byte.json": "invalid_json",
    "i_string_not_in_unicode_range.json": "invalid_json",
    "i_string_overlong_sequence_2_bytes.json": "invalid_json",
    "i_string_overlong_sequence_6_bytes.json": "invalid_json",
    "i_string_overlong_sequence_6_bytes_null.json": "invalid_json",
    "i_string_truncated-utf-8.json": "invalid_json",
    "i_string_utf16BE_no_BOM.json": "invalid_json",
    "i_string_utf16LE_no_BOM.json": "invalid_json",
    "i_structure_500_nested_arrays.json": "too_deep",
    "i_structure_UTF-8_BOM_empty_object.json": "parsed",
}

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def answer(data: bytes, max_depth: int = 100) -> str:
    try:
        loads(data, max_depth=max_depth)
    except StrictJsonError as error:
        return error.code
    return "parsed"


@pytest.mark.skipif(not SUITE.is_dir(), reason="the JSON test suite isn't on this machine")
def test_the_json_test_suite_is_answered_as_the_tables_say() -> None:
    files = sorted(SUITE.glob("*.json"))
    assert len(files) == 318
    wrong = []
    for file in files:
        got = answer(file.read_bytes())
        stated = REFUSED_THOUGH_GRAMMATICAL | LEFT_TO_THE_PARSER
        wanted = stated.get(file.name, "parsed" if file.name.startswith("y_") else "refused")
        if got != wanted and (wanted != "refused" or got == "parsed"):
            wrong.append((file.name, wanted, got))
    assert wrong == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"{",
        b"{} {}",
        b"[1]x",
        b"{}\x00",
        b"NaN",
        b"[-Infinity]",
        b"Infinity",
        b"1e400",
        b"-1E+400",
        b"1e0400",
        b"1" * 310 + b".0",
        b"9" * 300 + b"e99",
        b'"\\ud83d"',
        b'"\\ud83d\\\\\\ude00"',
        b'"\\ude00\\ud83d"',
        b'{"a":1,"a":1}',
        b'[{"a":{"b":1,"\\u0062":2}}]',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        '"a"'.encode("utf-16"),
        '{"a":1}'.encode("utf-16-le"),
        b'"\n"',
        b"'a'",
        b"01",
        b"[1,]",
        b"\xef\xbb\xbf\xef\xbb\xbf{}",
        b"\xef\xbb\xbf",
    ],
)
def test_what_is_not_json_or_reads_two_ways_is_invalid(data: bytes) -> None:
    assert answer(data) == "invalid_json"


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b' \t\r\n{"a":1}\n', {"a": 1}),
        (b"null", None),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\\\ud83d"', "\\ud83d"),
        (b'"\\u0000"', "\x00"),
        (b'{"a":1,"A":2}', {"a": 1, "A": 2}),
        (b"1e308", 1e308),
        (b'"1e400 NaN ' + b"9" * 1001 + b'"', "1e400 NaN " + "9" * 1001),
        (b"0." + b"0" * 2000 + b"1", 0.0),
    ],
)
def test_what_only_looks_suspicious_is_parsed(data: bytes, value: Any) -> None:
    assert loads(data) == value


@pytest.mark.parametrize("digits", [1, 18, 19, 20, 199, 200, 309, 999, 1000])
@pytest.mark.parametrize("sign", [b"", b"-"])
def test_integers_of_up_to_a_thousand_digits_are_exact(digits: int, sign: bytes) -> None:
    value = loads(b'{"n":' + sign + b"7" * digits + b"}")["n"]
    assert type(value) is int
    assert str(value).encode() == sign + b"7" * digits


@pytest.mark.parametrize("digits", [1001, 4301, 200_000])
@pytest.mark.parametrize("sign", [b"", b"-"])
def test_longer_integers_are_out_of_range(digits: int, sign: bytes) -> None:
    assert answer(b"[" + sign + b"9" * digits + b"]") == "number_out_of_range"


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"\\"[[":', b"}]")])
@pytest.mark.parametrize("limit", [2, 10, 100])
def test_the_depth_limit_is_exact(opening: bytes, closing: bytes, limit: int) -> None:
    levels = limit // len(closing)
    assert answer(opening * levels + b"1" + closing * levels, limit) == "parsed"
    assert answer(b"[" + opening * levels + b"1" + closing * levels + b"]", limit) == "too_deep"


def test_brackets_side_by_side_or_in_strings_are_not_depth() -> None:
    assert answer(b"[" + b",".join([b"[{}]"] * 1000) + b"]", 3) == "parsed"
    assert answer(b'["' + b"[" * 1000 + b'\\"{{{"]', 1) == "parsed"
    assert answer(b'["\\\\","' + b"[" * 10 + b'"]', 1) == "parsed"


@pytest.mark.parametrize("data", [b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000])
def test_endless_nesting_is_refused_and_never_a_recursion_error(data: bytes) -> None:
    assert answer(data) == "too_deep"
    assert answer(data, 10**6) in {"too_deep", "invalid_json"}


def test_no_recursion_error_escapes_where_the_stack_is_nearly_used_up() -> None:
    def deep(frames: int) -> str:
        return deep(frames - 1) if frames else answer(b"[" * 100 + b"]" * 100)

    used = sum(1 for _ in iter_frames())
    assert deep(sys.getrecursionlimit() - used - 60) in {"too_deep", "parsed"}


def iter_frames() -> list[Any]:
    frame, frames = sys._getframe(), []
    while frame.f_back:
        frames.append(frame)
        frame = frame.f_back
    return frames


@pytest.mark.parametrize(
    "data",
    [
        b'{"secret":1,"secret":2}',
        b'{"a":secret}',
        b'["secret" "b"]',
        b'"secret\xff"',
        b'"secret\\ud800"',
        b'"secret\\q"',
    ],
)
def test_a_detail_names_a_rule_and_never_a_value(data: bytes) -> None:
    with pytest.raises(StrictJsonError) as refused:
        loads(data)
    assert refused.value.detail
    assert "secret" not in str(refused.value)


@given(JSON_VALUES)
def test_every_json_value_survives_writing_and_reading(value: Any) -> None:
    assert loads(json.dumps(value).encode()) == value
    assert loads(canonical(value)) == value


@given(st.binary(max_size=40) | st.text('[]{}",:\\ue019.+-dDaln \n', max_size=40).map(str.encode))
def test_any_bytes_are_parsed_as_the_standard_library_would_or_refused(data: bytes) -> None:
    got = answer(data)
    assert got in {"parsed", "invalid_json", "too_deep", "number_out_of_range"}
    if got == "parsed":
        assert json.loads(data) == loads(data)


@settings(max_examples=50)
@given(st.dictionaries(st.text(), JSON_VALUES, min_size=2, max_size=6))
def test_the_canonical_form_forgets_the_order_of_names_and_the_spaces(value: dict[str, Any]) -> None:
    turned = dict(reversed(value.items()))
    assert canonical(loads(json.dumps(turned, indent=2).encode())) == canonical(value)


def test_the_canonical_form_keeps_integers_and_floats_apart() -> None:
    assert canonical([1, 1.0, 10**30, 1e30, -0.0, 0]) == b"[1,1.0,1000000000000000000000000000000,1e+30,-0.0,0]"
