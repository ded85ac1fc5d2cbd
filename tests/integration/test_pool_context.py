"""What a handler's context does in a real child: progress, the folder, follow-ups."""

import asyncio
import json
from pathlib import Path
from typing import Any

from consumer.core.outbox import FollowUp
from consumer.core.outcome import Crashed, Failed, Succeeded, TimedOut
from tests.support.leash import ROOT
from tests.support.pools import Bench, pool
from tests.support.waiting import eventually

TALKING: dict[str, Any] = {"modules": ("talking",), "processes": 1}


async def shown(bench: Bench, *marks: tuple[str, float, str]) -> None:
    async def so() -> bool:
        return [(key, fraction, note) for _, key, fraction, note in bench.marks] == [*marks]

    await eventually(so, f"the marks {marks}; there are {bench.marks}")


def test_progress_is_seen_while_the_job_runs_seldom_and_up_to_the_last() -> None:
    async def main() -> None:
        async with pool(**TALKING) as bench:
            running = bench.begin("progresses_and_waits", [0.1, 0.2, 0.3], seconds=8, key="waits")
            first, last = ("waits", 0.1, "at 0.1"), ("waits", 0.3, "at 0.3")
            await shown(bench, first, last)
            running.cancel()
            bench.marks.clear()

            bench.pool.cancel("progresses_and_waits", "waits")
            await bench.until_full()
            await bench.result("progresses", [n / 5000 for n in range(5001)], key="many")
            assert len(bench.marks) <= 5
            assert bench.marks[-1] == ("progresses", "many", 1.0, "at 1.0")

            outcome = await bench.run("progresses", [2.0], key="bad")
            assert isinstance(outcome, Failed)
            assert (outcome.fault.error_type, outcome.fault.message) == (
                "ValueError",
                "the progress of a job is a number from 0 to 1",
            )

    asyncio.run(main())


def test_the_folder_of_a_run_is_gone_when_the_run_is_over_however_it_ends(tmp_path: Path) -> None:
    async def main() -> None:
        dear, told = tmp_path / "dear", tmp_path / "told"
        dear.mkdir()
        (dear / "file").write_text("x")
        async with pool(**TALKING) as bench:

            async def run(end: str, **options: Any) -> tuple[Any, Path]:
                payload = {"end": end, "link": str(dear), "away": str(tmp_path / "away"), "told": str(told)}
                outcome = await bench.run("uses_its_folder", payload, **options)
                return outcome, Path(told.read_text())

            outcome, folder = await run("returns")
            assert isinstance(outcome, Succeeded)
            assert json.loads(outcome.result) == f"{folder} 700"
            assert not folder.exists()
            place = folder.parent.parent

            for end, kind in (("locked", Succeeded), ("raises", Failed), ("is a link", Succeeded)):
                outcome, folder = await run(end)
                assert isinstance(outcome, kind)
                assert not folder.exists()
                assert not folder.is_symlink()

            outcome, folder = await run("hangs", seconds=0.5)
            assert isinstance(outcome, TimedOut)
            assert not folder.exists()

            outcome, folder = await run("dies")
            assert isinstance(outcome, Crashed)

            async def removed() -> bool:
                return not folder.parent.exists()

            await eventually(removed, "the removal of what a dead child left")
            assert (dear / "file").read_text() == "x"
        assert not place.exists()

    asyncio.run(main())


def test_follow_ups_come_with_a_success_and_with_nothing_else() -> None:
    async def main() -> None:
        async with pool(**TALKING, result_limit=1000) as bench:
            asked = {"follow_ups": [{"kind": "next", "payload": {"n": n}} for n in range(3)]}
            outcome = await bench.run("asks_for_more", asked, key="k")
            assert isinstance(outcome, Succeeded)
            assert outcome.result == b'"asked"'
            assert outcome.follow_ups == tuple(
                FollowUp("next", f"asks_for_more/k/{n + 1}", b'{"n":%d}' % n, None, 0) for n in range(3)
            )

            outcome = await bench.run("asks_for_more", asked | {"fails": True})
            assert isinstance(outcome, Failed)
            outcome = await bench.run("asks_for_more", {"follow_ups": [{"kind": "", "payload": 1}]})
            assert isinstance(outcome, Failed)
            assert outcome.fault.message.startswith("the kind of a follow-up is missing")

            for kind in ("silent", "asks_in_vain"):
                outcome = await bench.run(kind)
                assert isinstance(outcome, Succeeded), outcome
                assert outcome.follow_ups == ()

            large = {"follow_ups": [{"kind": "next", "payload": '"' * 500} for _ in range(1000)]}
            outcome = await bench.run("asks_for_more", large)
            assert isinstance(outcome, Succeeded)
            assert len(outcome.follow_ups) == 1000
            assert bench.exits == []

    asyncio.run(main())


def test_the_handler_in_the_documentation_does_what_is_written_there(tmp_path: Path) -> None:
    code = (ROOT / "docs/handlers.md").read_text().partition("```python\n")[2].partition("```")[0]
    (tmp_path / "report.py").write_text(code)

    async def main() -> None:
        async with pool(modules=("report",), path=(str(tmp_path),), processes=1) as bench:
            outcome = await bench.run("report.build", 3, key="may")
            assert isinstance(outcome, Succeeded)
            assert outcome.result == b'{"pages":3}'
            assert outcome.follow_ups == (
                FollowUp("report.mail", "report.build/may/1", b'{"report":"may"}', None, 1500),
            )
            assert [(line.key, line.stream, line.text) for line in bench.lines] == [
                ("may", "consumer.job", "attempt 1, 20 s left"),
                ("may", "stdout", "wrote 3 pages"),
            ]
            assert bench.marks[-1] == ("report.build", "may", 1.0, "page 2")

    asyncio.run(main())
