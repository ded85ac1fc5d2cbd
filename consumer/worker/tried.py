"""The parent's side of a trial: whether the handler of a kind would accept a payload, asked of a process of its own."""

import asyncio
import json
import os
import sys
from contextlib import suppress

from consumer.core.errors import JobModulesError
from consumer.worker.config import PoolConfig


async def objection(config: PoolConfig, kind: str, body: bytes, pointer: str) -> str:
    """Why the payload in a body would be refused; empty where it wouldn't. Raises JobModulesError."""
    order = {
        "modules": config.modules,
        "path": config.path,
        "kind": kind,
        "pointer": pointer,
        "depth": config.max_depth,
        "parent": os.getpid(),
    }
    trial = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "consumer.worker.trial"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    names = ", ".join(config.modules)
    try:
        async with asyncio.timeout(config.start_timeout):
            said, _ = await trial.communicate(json.dumps(order).encode() + b"\n" + body)
        answer = json.loads(said)
    except TimeoutError:
        raise JobModulesError(
            f"the job modules {names} did not say within {config.start_timeout:g} s whether they accept the payload: "
            "make them lighter or raise pool.start_timeout_seconds"
        ) from None
    except ValueError:
        raise JobModulesError(f"the job modules {names} ended their process while they were asked") from None
    finally:
        if trial.returncode is None:
            with suppress(ProcessLookupError):
                trial.kill()
            await trial.wait()
    if "error" in answer:
        raise JobModulesError(answer["error"])
    return str(answer.get("objection", ""))
