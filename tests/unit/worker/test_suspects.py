from consumer.worker.suspects import Suspects


def test_a_suspect_is_one_until_it_is_cleared() -> None:
    suspects = Suspects()
    suspects.clear("kind", "one")
    suspects.add("kind", "one")
    assert ("kind", "one") in suspects
    assert ("kind", "two") not in suspects
    suspects.clear("kind", "one")
    assert ("kind", "one") not in suspects


def test_only_the_latest_are_remembered() -> None:
    suspects = Suspects()
    for number in range(1_001):
        suspects.add("kind", str(number))
    assert ("kind", "0") not in suspects
    assert ("kind", "1") in suspects
