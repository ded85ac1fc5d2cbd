"""The loop of jobs, in a process of its own: the classes of asyncio are changed there."""

import subprocess
import sys
import textwrap


def ran(program: str) -> str:
    """What a program prints that has jobs `one` and `two`, and the `mark` that a parent would read."""
    prelude = """
        import asyncio, os, signal, threading, time
        from consumer.worker import own_hand
        from consumer.worker.job_loop import JobLoop
        from consumer.worker.mark import Mark, shared_memory

        own_hand.watch()
        mark = Mark(shared_memory())
        loop = JobLoop(mark)
        one, two = loop.new_job(1, 0), loop.new_job(2, 0.5)
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
                print(sorted(map(str, seen)), mark.who, mark.has_strangers)

            loop.run_until_complete(main())
        """)
        == "['1', '1', '1', '2', '2', '2', 'True', 'True'] 0 True"
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


def test_what_a_job_sets_in_the_loop_does_not_hold_for_the_others() -> None:
    assert (
        ran("""
            from concurrent.futures import ThreadPoolExecutor

            async def misuse():
                loop.set_task_factory(lambda *_, **__: 1 / 0)
                with ThreadPoolExecutor() as mine:
                    loop.set_default_executor(mine)
                await loop.shutdown_default_executor()
                await loop.shutdown_asyncgens()

            async def use():
                async def numbers():
                    yield 1
                    yield 2
                seen = []
                async for number in numbers():
                    seen.append(number)
                    await asyncio.wait([one.start(misuse())])
                return seen, await asyncio.create_task(asyncio.sleep(0, 3)), await asyncio.to_thread(lambda: 4)

            print(loop.run_until_complete(use()))
        """)
        == "([1, 2], 3, 4)"
    )


def test_a_loop_that_a_job_begins_in_a_thread_is_not_taken_for_the_loop_of_all() -> None:
    assert (
        ran("""
            async def steps():
                for _ in range(100):
                    await asyncio.sleep(0)

            async def work():
                thread = asyncio.to_thread(asyncio.run, steps())
                await asyncio.sleep(0)
                waiting = asyncio.ensure_future(thread)
                await asyncio.sleep(0)
                before = mark.steps
                until = time.monotonic() + 0.1
                seen = {mark.who for _ in iter(lambda: time.monotonic() < until, False)}
                print(seen, mark.steps - before)
                await waiting

            async def main():
                await asyncio.wait([one.start(work())])

            loop.run_until_complete(main())
        """)
        == "{1} 0"
    )


def test_a_thread_that_nobody_knows_is_seen_from_the_end_of_the_step_that_began_it() -> None:
    assert (
        ran("""
            over = threading.Event()

            async def work():
                threading.Thread(target=over.wait).start()

            async def look():
                await asyncio.to_thread(int)
                print(mark.has_strangers)
                await asyncio.wait([one.start(work())])
                print(mark.has_strangers)
                over.set()

            async def main():
                await asyncio.wait([two.start(look())])

            loop.run_until_complete(main())
        """)
        == "False\nTrue"
    )


def test_a_signal_that_a_job_sends_to_its_own_process_is_seen_while_it_is_on_its_way() -> None:
    assert (
        ran("""
            seen = []
            signal.signal(signal.SIGUSR1, lambda *_: seen.append(set(mark.at_itself)))

            async def work():
                for send in (
                    lambda: os.kill(os.getpid(), signal.SIGUSR1),
                    lambda: os.killpg(0, 0) or os.kill(-os.getpgrp(), 0) or signal.raise_signal(signal.SIGUSR1),
                ):
                    send()
                    seen.append(set(mark.at_itself))
                os.kill(os.getppid(), 0)

            async def main():
                await asyncio.wait([one.start(work())])

            loop.run_until_complete(main())
            print(seen)
        """)
        == "[{1}, set(), {1}, set()]"
    )


def test_a_job_can_cancel_its_own_tasks_and_those_of_nobody_else() -> None:
    assert (
        ran("""
            async def cancel_all():
                mine = asyncio.create_task(asyncio.sleep(100))
                tasks = asyncio.all_tasks() - {asyncio.current_task()}
                print(len(tasks), [task is mine for task in tasks if task.cancel()])

            async def main():
                await asyncio.wait([two.start(asyncio.sleep(0.05)), one.start(cancel_all())])
                await asyncio.wait([two.main])
                print(two.main.cancelled())

            main = loop.create_task(main())
            main.owner = "us"
            loop.run_until_complete(main)
        """)
        == "3 [True]\nFalse"
    )
