"""Which places a connection's settings lead to, whatever characters are in them."""

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.broker.endpoints import Login, logged_in, shown, urls

NOBODY = Login()
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


def test_a_url_alone_is_the_one_place() -> None:
    assert urls("amqp://u:p@rabbit:5673/v", [], NOBODY, tls=False) == ("amqp://u:p@rabbit:5673/v",)


def test_hosts_go_before_the_one_in_the_url_and_keep_user_and_vhost() -> None:
    assert urls("amqp://u:p@rabbit:5673/v", ["a", "b:7", "[::1]", "[::1]:8"], NOBODY, tls=False) == (
        "amqp://u:p@a:5672/v",
        "amqp://u:p@b:7/v",
        "amqp://u:p@[::1]:5672/v",
        "amqp://u:p@[::1]:8/v",
    )


@pytest.mark.parametrize(("url", "tls"), [("amqp://a", True), ("amqps://a", False), ("amqps://a", True)])
def test_tls_has_a_port_of_its_own(url: str, tls: bool) -> None:
    assert urls(url, [], NOBODY, tls=tls) == ("amqps://a:5671/",)
    assert urls(url, ["b"], NOBODY, tls=tls) == ("amqps://b:5671/",)


def test_parameters_of_the_url_are_kept() -> None:
    assert urls("amqp://a/v?auth=external", [], NOBODY, tls=False) == ("amqp://a:5672/v?auth=external",)


@given(TEXT, TEXT, TEXT)
def test_any_characters_get_through_as_they_are(user: str, password: str, vhost: str) -> None:
    (url,) = urls("amqp://guest:guest@rabbit/", [], Login(user, password, vhost), tls=False)
    parts = urlsplit(url)
    assert (unquote(parts.username or ""), unquote(parts.password or "")) == (user, password)
    assert (parts.hostname, parts.port, unquote(parts.path)) == ("rabbit", 5672, f"/{vhost}")
    assert urls(url, [], NOBODY, tls=False) == (url,)


@given(TEXT, TEXT)
def test_a_login_changes_what_it_holds_and_nothing_else(password: str, vhost: str) -> None:
    (url,) = urls("amqps://u:old@[::1]:7/", [], Login(vhost=vhost), tls=False)
    (wanted,) = urls("amqps://[::1]:7/", [], Login("u", password, vhost), tls=False)
    assert logged_in(url, Login(password=password)) == wanted


def test_what_is_shown_holds_no_secret() -> None:
    assert shown("amqp://u:p%2F@[::1]/a%2Fb") == "[::1]:5672, vhost 'a/b'"
    assert shown("amqps://u:p@rabbit") == "rabbit:5671, vhost '/'"
