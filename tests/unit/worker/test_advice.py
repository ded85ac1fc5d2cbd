"""What is read off the errors of the HTTP libraries that people use: the real ones."""

import json
import urllib.error
from email.message import Message
from email.utils import formatdate
from typing import NoReturn

import aiohttp
import httpx
import pytest
import requests
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from consumer.worker import advice
from consumer.worker.advice import LONGEST, Advice

NOW = 1_800_000_000.0
SOON = formatdate(NOW + 90, usegmt=True)


def of_httpx(status: int, headers: dict[str, str]) -> Exception:
    request = httpx.Request("GET", "http://partner.test/")
    with pytest.raises(httpx.HTTPStatusError) as caught:
        httpx.Response(status, headers=headers, request=request).raise_for_status()
    return caught.value


def of_requests(status: int, headers: dict[str, str]) -> Exception:
    response = requests.Response()
    response.status_code = status
    response.headers.update(headers)
    with pytest.raises(requests.HTTPError) as caught:
        response.raise_for_status()
    return caught.value


def of_aiohttp(status: int, headers: dict[str, str]) -> Exception:
    url = URL("http://partner.test/")
    info = aiohttp.RequestInfo(url, "GET", CIMultiDictProxy(CIMultiDict()), url)
    return aiohttp.ClientResponseError(info, (), status=status, headers=CIMultiDict(headers))


def of_urllib(status: int, headers: dict[str, str]) -> Exception:
    message = Message()
    for name, value in headers.items():
        message[name] = value
    return urllib.error.HTTPError("http://partner.test/", status, "no", message, None)


LIBRARIES = (of_httpx, of_requests, of_aiohttp, of_urllib)


@pytest.mark.parametrize("library", LIBRARIES)
def test_status_and_seconds_are_read_off_an_error(library: type) -> None:
    assert advice.of(library(429, {"Retry-After": "17"}), NOW) == Advice(429, 17.0)
    assert advice.of(library(503, {"retry-after": " 2 "}), NOW) == Advice(503, 2.0)
    assert advice.of(library(404, {}), NOW) == Advice(404, None)


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_http_date_is_a_wait_by_the_servers_own_clock_where_it_tells_its_time(library: type) -> None:
    assert advice.of(library(503, {"Retry-After": SOON}), NOW) == Advice(503, 90.0)
    hour_behind = formatdate(NOW - 3_600, usegmt=True)
    assert advice.of(library(503, {"Retry-After": SOON, "Date": hour_behind}), NOW) == Advice(503, 3_690.0)


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        (0, 0.0),
        (1.5, 1.5),
        ("120", 120.0),
        (SOON, 90.0),
        ("Friday, 15-Jan-27 08:01:30 GMT", 90.0),
        ("Fri Jan 15 08:01:30 2027", 90.0),
        (formatdate(NOW - 5, usegmt=True), 0.0),
        (10**12, LONGEST),
        pytest.param(10**400, LONGEST, id="huge"),
        (1e308, LONGEST),
        ("9" * 400, LONGEST),
        *[(nonsense, None) for nonsense in (None, True, -1, float("nan"), float("inf"), "", "soon", "-3", b"3")],
    ],
)
def test_an_advised_wait_is_a_number_or_one_of_the_forms_of_a_header(told: object, seconds: float | None) -> None:
    assert advice.seconds(told, NOW) == seconds


class Hostile(Exception):
    @property
    def response(self) -> object:
        raise SystemExit(1)


class Closed(dict[str, str]):
    def items(self) -> NoReturn:
        raise RuntimeError("closed")


@pytest.mark.parametrize(
    "headers", [None, [("retry-after", "1")], {"retry-after": b"1"}, {b"retry-after": "1"}, Closed()]
)
def test_the_status_counts_whatever_the_headers_are(headers: object) -> None:
    error = of_aiohttp(503, {})
    error.headers = headers  # type: ignore[attr-defined]
    assert advice.of(error, NOW) == Advice(503, None)


def test_an_error_of_another_shape_or_a_hostile_one_says_nothing() -> None:
    for error in (ValueError("x"), SystemExit(503), Hostile(), OSError(404, "no"), json.JSONDecodeError("x", "", 0)):
        assert advice.of(error, NOW) == Advice(None, None)
