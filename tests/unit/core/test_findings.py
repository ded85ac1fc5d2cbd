from consumer.core.findings import Finding, Severity, listed


def test_a_finding_is_one_sentence_with_its_way_out() -> None:
    finding = Finding(Severity.FAULT, "queue 'a', x-overflow", "none", "reject-publish", "migrate")
    assert str(finding) == "queue 'a', x-overflow: found none, wanted reject-publish; migrate"


def test_a_long_list_is_cut_and_counted() -> None:
    assert listed(["a", "b", "c"]) == "a, b, c"
    assert listed(["a", "b", "c", "d", "e"]) == "a, b, c, 2 more"
