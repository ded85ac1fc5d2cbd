"""The mark and the tasks of a job, in a process of its own: the loop's own classes are changed there."""

import subprocess
import sys
import textwrap


def ran(program: str) -> str:
    """What a program prints that has jobs `one` and `two`, and the `mark` that a parent would read."""
    prelude = """
        import asyncio, os, time
        from consumer.worker.io_job import FollowedThreads, IoJob, follow_steps, follow_tasks
        from consumer.worker.mark import Mark, shared_memory

        mark = Mark(shared_memory())
        loop = asyncio.SelectorEventLoop()
        loop.set_task_factory(follow_tasks)
        loop.set_default_executor(FollowedThreads(mark))
        follow_steps(mark)
        one, two = IoJob(1, 0), IoJob(2, 0.5)
    """
    source = textwrap.dedent(prelude) + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_each_step_of_a_task_a_callback_or_a_thread_is_marked_as_its_jobs() -> None:
    assert (
        ran("""
            seen = []

            async def inner():
                seen.append(mark.who)

            async def work(number):
                seen.append(mark.who)
                await asyncio.sleep(0)
                await asyncio.create_task(inner())
                asyncio.get_running_loop().call_soon(lambda: seen.append(mark.who))
                await asyncio.sleep(0.01)
                seen.append(number in await asyncio.to_thread(lambda: mark.in_threads))

            async def main():
                await asyncio.wait([one.start(work(1)), two.start(work(2))])
                print(sorted(map(str, seen)), mark.who)

            loop.run_until_complete(main())
        """)
        == "['1', '1', '1', '2', '2', '2', 'True', 'True'] 0"
    )


def test_what_a_task_starts_is_its_jobs_unless_its_context_is_empty() -> None:
    assert (
        ran("""
            import contextvars

            async def work():
                asyncio.create_task(asyncio.sleep(100))
                asyncio.create_task(asyncio.sleep(100), context=contextvars.Context())
                await asyncio.sleep(0)

            async def main():
                await one.start(work())
                print(len(one.tasks), len(asyncio.all_tasks()) - 1)
                await asyncio.wait(one.cancel_all())
                print(len(one.tasks))

            loop.run_until_complete(main())
        """)
        == "1 2\n0"
    )


def test_a_task_that_exits_does_not_end_the_loop() -> None:
    assert (
        ran("""
            async def leave():
                raise SystemExit(3)

            async def main():
                task = one.start(leave())
                await asyncio.wait([task])
                print(repr(task.exception()))

            loop.run_until_complete(main())
        """)
        == "SystemExit(3)"
    )


def test_cpu_time_counts_for_the_job_that_used_it() -> None:
    assert (
        ran("""
            async def spin():
                until = time.thread_time() + 0.05
                while time.thread_time() < until:
                    pass

            async def main():
                await asyncio.wait([one.start(spin()), two.start(asyncio.sleep(0))])
                print(one.cpu_seconds >= 0.05, two.cpu_seconds < 0.02)

            loop.run_until_complete(main())
        """)
        == "True True"
    )


def test_a_job_that_uses_too_much_cpu_time_is_cancelled() -> None:
    assert (
        ran("""
            async def spin():
                while True:
                    until = time.thread_time() + 0.05
                    while time.thread_time() < until:
                        pass
                    await asyncio.sleep(0)

            async def main():
                task = two.start(spin())
                await asyncio.wait([task])
                print(task.cancelled(), two.ended_by, 0.5 < two.cpu_seconds < 1)

            loop.run_until_complete(main())
        """)
        == "True b'spent' True"
    )
