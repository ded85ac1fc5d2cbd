"""What the settings may say instead of a handler."""

from consumer.core.policy import Jitter, KindPolicy, Overridden, Override, RetryPolicy

DECLARED = KindPolicy("a", 30.0, RetryPolicy(max_attempts=3, base=2.0))


class Declared:
    def policy(self, kind: str) -> KindPolicy | None:
        return DECLARED if kind == "a" else None


def test_what_the_settings_say_of_a_kind_wins_and_the_rest_stays_as_declared() -> None:
    catalogue = Overridden(Declared(), {"a": Override({"timeout": 5.0}, {"max_attempts": 9, "jitter": Jitter.NONE})})
    assert catalogue.policy("a") == KindPolicy("a", 5.0, RetryPolicy(max_attempts=9, base=2.0, jitter=Jitter.NONE))


def test_kinds_of_which_nothing_is_said_are_as_declared_and_no_setting_makes_a_kind() -> None:
    catalogue = Overridden(Declared(), {"b": Override({"timeout": 5.0}, {})})
    assert catalogue.policy("a") is DECLARED
    assert catalogue.policy("b") is None
