"""Jobs that say something, in every way there is, and jobs that use what their context gives them."""

import ctypes
import logging
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from consumer import JobContext, job

sys.stdout.write("imported\n")
logging.basicConfig(level=logging.CRITICAL)  # as people do; it must not silence anybody


@job("prints", timeout=10)
def prints(payload: list[str]) -> None:
    for text in payload:
        sys.stdout.write(text.replace("HALF", "\ud83d"))


@job("says_in_all_ways", timeout=10)
def says_in_all_ways(payload: str, context: JobContext) -> None:
    sys.stdout.write(f"{payload} stdout\n")
    sys.stderr.write(f"{payload} stderr\n")
    context.logger.warning("%s logger", payload)
    logging.getLogger("a.library").info("%s library", payload)
    logging.getLogger("a.library").debug("not wanted")
    os.write(1, f"{payload} os.write\n".encode())
    ctypes.CDLL(None).puts(f"{payload} puts".encode())
    subprocess.run(["echo", f"{payload} program"], check=True)
    sys.stdout.write(f"{payload} without a line feed")
    os.write(2, f"{payload} at the end".encode())


@job("logs_an_error", timeout=10)
def logs_an_error(payload: str, context: JobContext) -> None:
    try:
        int(payload)
    except ValueError:
        context.logger.exception("no number")


@job("logs_badly", timeout=10)
def logs_badly(payload: str, context: JobContext) -> None:
    context.logger.info("%d things", payload)


@job("speaks_in_threads", timeout=10)
def speaks_in_threads(payload: int) -> None:
    with ThreadPoolExecutor(payload) as threads:
        list(threads.map(logging.getLogger("thread").info, map(str, range(payload))))


@job("floods", timeout=20)
def floods(payload: dict[str, Any]) -> str:
    """`way`: print, log, or the program yes, which writes beside Python."""
    if payload["way"] == "yes":
        subprocess.run(f"yes | head -c {payload['bytes']}", shell=True, check=True)
    for _ in range(payload["bytes"] // 100):
        if payload["way"] == "print":
            sys.stdout.write("y" * 99 + "\n")
        elif payload["way"] == "log":
            logging.getLogger("flood").error("y" * 100)
    return "done"


@job("breaks_its_output", timeout=10)
def breaks_its_output(payload: str) -> None:
    if payload == "closes":
        sys.stdout.close()
        sys.stderr.close()
    else:
        sys.stdout = sys.stderr = None


@job("dies_talking", timeout=10)
def dies_talking(payload: str) -> None:
    sys.stdout.write(f"{payload} printed\n")
    os.write(2, f"{payload} written".encode())
    os._exit(3)


@job("is_cut_off_while_talking", timeout=10)
def is_cut_off_while_talking(payload: int) -> None:
    """Its timeout comes in the middle of a word, again and again."""
    while True:
        sys.stdout.write("y" * payload + "\n")


@job("progresses", timeout=20)
def progresses(payload: list[float], context: JobContext) -> None:
    for fraction in payload:
        context.progress(fraction, f"at {fraction}")


@job("progresses_and_waits", timeout=20)
def progresses_and_waits(payload: list[float], context: JobContext) -> None:
    progresses(payload, context)
    threading.Event().wait()


@job("uses_its_folder", timeout=10)
def uses_its_folder(payload: dict[str, str], context: JobContext) -> str:
    """`end`: how; `link`: to what a link in the folder leads."""
    folder = context.tempdir
    assert folder is context.tempdir
    (folder / "file").write_text("x")
    inner = folder / "inner"
    inner.mkdir()
    (inner / "file").write_text("x")
    if "link" in payload:
        (folder / "link").symlink_to(payload["link"])
    if "told" in payload:
        Path(payload["told"]).write_text(str(folder))
    if payload["end"] == "locked":
        inner.chmod(0)
    elif payload["end"] == "raises":
        raise ValueError("on purpose")
    elif payload["end"] == "dies":
        os._exit(3)
    elif payload["end"] == "hangs":
        time.sleep(1e9)
    elif payload["end"] == "is a link":
        folder.rename(payload["away"])
        folder.symlink_to(payload["link"])
    return f"{folder} {folder.stat().st_mode & 0o777:o}"


@job("asks_for_more", timeout=10)
def asks_for_more(payload: dict[str, Any], context: JobContext) -> str:
    for follow_up in payload["follow_ups"]:
        context.send(**follow_up)
    if payload.get("fails"):
        raise ValueError("on purpose")
    return "asked"


@job("asks_in_vain", timeout=10)
def asks_in_vain(payload: Any, context: JobContext) -> str:
    """What it asks for is no job, and that is fine with it."""
    with suppress(ValueError):
        context.send("", payload)
    return "asked"


@job("minds_its_cancellation", timeout=20)
def minds_its_cancellation(payload: Any, context: JobContext) -> str:
    while not context.cancelled:
        time.sleep(0.01)
    return "stopped"


@job("is_never_cancelled", timeout=20)
def is_never_cancelled(payload: Any, context: JobContext) -> bool:
    return context.cancelled


@job("silent", timeout=10)
def silent(payload: Any) -> None:
    """Says nothing."""


@job("writes_its_key", timeout=10)
def writes_its_key(payload: int, context: JobContext) -> str:
    """Now and then without a line feed, with a print beside it, or with a large result."""
    os.write(1, f"{context.key} line\n".encode())
    if payload % 2 == 0:
        os.write(2, f"{context.key} end".encode())
    if payload % 3 == 0:
        sys.stdout.write(f"{context.key} print\n")
    return "x" * (200_000 if payload % 50 == 0 else 10)
