"""Kinds that cool down, shared by all who share a store; for all three stores."""

import pytest

from consumer.core.cooldown import Cooldown
from tests.contract.stores import Subject


async def test_a_cooldown_is_there_until_somebody_sees_the_kind_up_again_however_late(subject: Subject) -> None:
    cooldown = Cooldown("mail", subject.now() + 30_000, "mail-api is down")
    async with subject.store() as store:
        assert await store.cooldowns() == []
        await store.cool(cooldown)
        assert await store.cooldowns() == [cooldown]
        await subject.let_pass(31_000)
        assert [found.kind for found in await store.cooldowns()] == ["mail"]
        await store.warm("mail")
        assert await store.cooldowns() == []


async def test_of_two_cooldowns_of_a_kind_the_longer_one_holds(subject: Subject) -> None:
    now = subject.now()
    short, long, other = (
        Cooldown("a", now + 9_000, "short"),
        Cooldown("a", now + 90_000, "long"),
        Cooldown("b", now + 9_000, ""),
    )
    async with subject.store() as store:
        for cooldown in (short, long, short, other):
            await store.cool(cooldown)
        assert sorted(await store.cooldowns(), key=lambda found: found.kind) == [long, other]


async def test_a_kind_that_is_warm_again_has_none_and_may_cool_down_anew(subject: Subject) -> None:
    now = subject.now()
    async with subject.store() as store:
        await store.cool(Cooldown("a", now + 90_000, "long"))
        await store.warm("a")
        await store.warm("never cooled")
        assert await store.cooldowns() == []
        again = Cooldown("a", now + 9_000, "again")
        await store.cool(again)
        assert await store.cooldowns() == [again]


async def test_a_reason_that_databases_refuse_is_stored_visibly(subject: Subject) -> None:
    async with subject.store() as store:
        await store.cool(Cooldown("a", subject.now() + 9_000, "caf\x00\udce9"))
        (found,) = await store.cooldowns()
        assert found.why == "caf\\x00\\udce9"


@pytest.mark.parametrize("subject", ["sqlite", "postgres"], indirect=True)
async def test_all_who_share_a_store_share_its_cooldowns(subject: Subject) -> None:
    cooldown = Cooldown("mail", subject.now() + 30_000, "mail-api is down")
    async with subject.store() as ours, subject.store("jobs.other") as theirs:
        await ours.cool(cooldown)
        assert await theirs.cooldowns() == [cooldown]
