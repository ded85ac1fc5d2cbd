from consumer.core.policy import Jitter, KindPolicy, RetryPolicy
from consumer.worker.catalogue import Offer, Sort, decode, encode


def test_a_catalogue_comes_back_as_it_was_written() -> None:
    retry = RetryPolicy(
        3, 0.5, 60.0, Jitter.NONE, retry_on=frozenset({"a.B", "builtins.OSError"}), no_retry_on=frozenset({"C"})
    )
    offers = [Offer(KindPolicy("a", 5.0, retry), {"type": "object"}), Offer(KindPolicy("é"), {}, Sort.IO)]
    assert decode(encode(offers)) == {offer.policy.kind: offer for offer in offers}
