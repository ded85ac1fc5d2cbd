"""What jobs print and log reaches the observer, as lines of the job that wrote them, and as many as may be."""

import asyncio
import logging
import time
from typing import Any

import pytest

from consumer.core.outcome import Crashed, Interrupted, Succeeded, TimedOut
from tests.support.pools import Bench, Line, pool
from tests.support.waiting import eventually

TALKING: dict[str, Any] = {"modules": ("talking",)}


def of(bench: Bench, kind: str, key: str = "key") -> list[tuple[str, int, str]]:
    return [(line.stream, line.level, line.text) for line in bench.lines if (line.kind, line.key) == (kind, key)]


def test_each_line_belongs_to_the_job_that_wrote_it_whatever_way_it_took() -> None:
    async def main() -> None:
        async with pool(**TALKING, processes=1) as bench:
            await asyncio.gather(
                *(bench.run("says_in_all_ways", f"job {n}", key=f"key {n}", attempt=n) for n in range(1, 6))
            )
            await bench.result("silent", key="silent")
            imported, *lines = bench.lines
            assert imported == Line("", "", 0, "output", logging.INFO, "imported")
            for n in range(1, 6):
                mine = [line for line in lines if line.key == f"key {n}"]
                assert {(line.kind, line.attempt) for line in mine} == {("says_in_all_ways", n)}
                assert sorted((line.stream, line.level, line.text) for line in mine) == [
                    ("a.library", logging.INFO, f"job {n} library"),
                    ("consumer.job", logging.WARNING, f"job {n} logger"),
                    ("output", logging.INFO, f"job {n} at the end"),
                    ("output", logging.INFO, f"job {n} os.write"),
                    ("output", logging.INFO, f"job {n} program"),
                    ("output", logging.INFO, f"job {n} puts"),
                    ("stderr", logging.INFO, f"job {n} stderr"),
                    ("stdout", logging.INFO, f"job {n} stdout"),
                    ("stdout", logging.INFO, f"job {n} without a line feed"),
                ]
            assert len(lines) == 45

    asyncio.run(main())


def test_output_of_jobs_that_follow_each_other_at_once_is_kept_apart() -> None:
    """What is in the pipe has no name on it, and the parent may be several reports behind."""

    async def main() -> None:
        async with pool(**TALKING, look_ahead=16) as bench:
            await asyncio.gather(
                *(bench.run("writes_its_key" if n % 4 else "silent", n, key=f"key-{n}") for n in range(1200))
            )
            written = [line for line in bench.lines if line.kind]
            assert [line for line in written if line.text.split()[0] != line.key] == []
            assert len(written) == sum(1 + (n % 2 == 0) + (n % 3 == 0) for n in range(1200) if n % 4)

    asyncio.run(main())


def test_what_is_printed_is_cut_into_lines_that_any_log_can_take() -> None:
    async def main() -> None:
        async with pool(**TALKING, processes=1) as bench:
            texts = [
                "a",
                "b\nc\r\n\n  \n",
                " 10 %\r 50 %\r100 %\n",
                "half a pair: HALF\n",
                "x" * 5000 + "\n",
                "ä" * 3,
            ]
            await bench.run("prints", texts)
            assert [text for _, _, text in of(bench, "prints")] == [
                "ab",
                "c",
                "100 %",
                "half a pair: \\ud83d",
                "x" * 2000,
                "x" * 2000,
                "x" * 1000,
                "äää",
            ]

            await bench.run("logs_an_error", "payload")
            ((stream, level, text),) = of(bench, "logs_an_error")
            assert (stream, level) == ("consumer.job", logging.ERROR)
            assert text.startswith("no number\nTraceback (most recent call last):\n")
            assert text.endswith("ValueError: invalid literal for int() with base 10: 'payload'")

            assert isinstance(await bench.run("logs_badly", "no number"), Succeeded)
            assert any("Logging error" in text for _, _, text in of(bench, "logs_badly"))

            await bench.run("speaks_in_threads", 20)
            assert {text for _, _, text in of(bench, "speaks_in_threads")} == {*map(str, range(20))}

    asyncio.run(main())


def test_a_job_that_breaks_its_standard_output_does_not_break_that_of_the_next() -> None:
    async def main() -> None:
        async with pool(**TALKING, processes=1) as bench:
            for way in ("closes", "sets to none"):
                assert isinstance(await bench.run("breaks_its_output", way), Succeeded)
                await bench.run("prints", [f"after a job that {way}\n"])
            assert [text for _, _, text in of(bench, "prints")] == [
                "after a job that closes",
                "after a job that sets to none",
            ]

    asyncio.run(main())


def test_the_last_words_of_a_child_are_those_of_the_job_that_it_died_of() -> None:
    async def main() -> None:
        async with pool(**TALKING, processes=1) as bench:
            dying = bench.begin("dies_talking", "it", key="dying")
            behind = bench.begin("prints", ["next\n"], key="behind")
            assert isinstance(await dying, Crashed)
            assert isinstance(await behind, Succeeded)
            assert of(bench, "dies_talking", "dying") == [
                ("stdout", logging.INFO, "it printed"),
                ("output", logging.INFO, "it written"),
            ]
            assert of(bench, "prints", "behind") == [("stdout", logging.INFO, "next")]

    asyncio.run(main())


@pytest.mark.parametrize("way", ["print", "log", "yes"])
def test_a_flood_fills_neither_log_nor_memory_and_holds_up_nobody(way: str) -> None:
    async def main() -> None:
        async with pool(**TALKING, log_limit=5000) as bench:
            lag = asyncio.create_task(most_lag())
            flood = bench.begin("floods", {"way": way, "bytes": 4_000_000})
            for _ in range(20):
                await bench.result("silent")
            assert isinstance(await flood, Succeeded)
            assert isinstance(await bench.run("prints", ["the next one may speak\n"]), Succeeded)
            *lines, last = of(bench, "floods")
            assert sum(len(text) + 64 for _, _, text in lines) <= 5000
            assert last[1:] == (logging.WARNING, "here the log of this job ends, at jobs.max_log_bytes (5000)")
            assert [text for _, _, text in of(bench, "prints")] == ["the next one may speak"]
            lag.cancel()
            assert worst < 0.05, f"one turn of the loop took {worst:.3f} s of our CPU"

    worst = 0.0

    async def most_lag() -> None:
        nonlocal worst
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            worst = max(worst, time.thread_time() - before)

    asyncio.run(main())


def test_a_job_that_is_cut_off_in_the_middle_of_a_word_damages_nothing() -> None:
    """The timeout is an exception that may come anywhere, also while a line is on its way to the parent."""

    async def main() -> None:
        async with pool(**TALKING, processes=1, log_limit=50_000_000) as bench:
            for round_ in range(10):
                outcome = await bench.run("is_cut_off_while_talking", 1500, seconds=0.05, key=f"key {round_}")
                assert isinstance(outcome, TimedOut)
            assert {line.text for line in bench.lines if line.kind} == {"y" * 1500}
            await bench.until_left(*10 * ["timeout"])

    asyncio.run(main())


def test_a_child_whose_parent_takes_no_time_to_listen_ends_in_time() -> None:
    async def main() -> None:
        async with pool(**TALKING, processes=1) as bench:
            talking = bench.begin("floods", {"way": "yes", "bytes": 10_000_000_000}, seconds=20)
            await bench.until(running=1)
            await bench.pool.stop(grace=0)
            assert isinstance(await talking, Interrupted)

    asyncio.run(main())


def test_job_modules_that_print_and_can_not_be_imported_are_heard(tmp_path: Any) -> None:
    async def main() -> None:
        (tmp_path / "noisy.py").write_text(
            "import sys\nprint('hear me')\nsys.stderr.write('and me')\nfrom consumer import job\n"
            "@job('noisy')\ndef noisy(payload: int) -> None: ...\n"
        )
        async with pool(modules=("noisy",), path=(str(tmp_path),), processes=1) as bench:

            async def heard() -> bool:
                return len(bench.lines) == 2

            await eventually(heard, "both lines")
            assert [(line.kind, line.text) for line in bench.lines] == [("", "hear me"), ("", "and me")]

    asyncio.run(main())
