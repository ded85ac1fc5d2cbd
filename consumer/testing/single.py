"""One run of one handler: decode, admit, execute and decide, as the daemon does them; nothing is carried out."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from config.settings import kinds_in
from consumer.core.admission import AdmissionRules, turned_away
from consumer.core.decode import DecodeRules, decode
from consumer.core.disposition import DeadLetter, Disposition
from consumer.core.job import Fault, Job, Message, Refusal
from consumer.core.policy import KindPolicy, Overridden
from consumer.core.ports import Work
from consumer.core.retry import decide, last_moment
from consumer.overriding import overrides_of
from consumer.testing.handlers import Function, Modules, kind_of
from consumer.testing.loop import forbid_a_running_loop
from consumer.testing.message import message_of, real_clock
from consumer.testing.outcome import RunOutcome, outcome_of
from consumer.testing.pipeline import Policies
from consumer.testing.rehearsal import Ran, Rehearsal, rehearse, rehearse_async
from consumer.worker.catalogue import Sort
from consumer.worker.failure import Refused
from consumer.worker.loading import Kind
from schemas import headers

_ADMISSION = AdmissionRules(tick=100, unknown_kind_grace=0)


def run(
    handler: Function | str,
    payload: Any,
    *,
    key: str = "test",
    attempt: int = 1,
    deadline: float | None = None,
    timeout: float | None = None,
    modules: Modules = (),
    cancelled: bool = False,
    chance: float = 0.5,
    settings: str | Path | None = None,
    reraise: bool = False,
) -> RunOutcome:
    """Run a handler once, and say what would become of its job.

    `handler`: the decorated function, or the name of its kind (declared in one of `modules`, where these are given).
    `payload`: what a producer would send, as a JSON value or a model; or the body itself, as bytes.
    `deadline`: seconds from now. `timeout`: seconds, instead of the kind's own. `cancelled`: somebody did, already.
    `chance`: where a wait falls in the range of its jitter, from 0, the shortest, to 1.
    `settings`: a TOML file, of which `[kinds]` counts. `reraise`: let the handler's own error reach the test.
    """
    if attempt < 1:
        raise ValueError(f"the first attempt is 1, and there is none before it: {attempt}")
    kind = kind_of(handler, modules)
    policy = _policy(kind.offer.policy, settings)
    if timeout is not None:
        policy = replace(policy, timeout=timeout)
    began = real_clock()
    account = {headers.ATTEMPT: attempt}
    if deadline is not None:
        account[headers.DEADLINE] = began + round(deadline * 1000)
    name = (policy.kind, key, attempt)
    job = _admitted(message_of(policy.kind, key, payload, account, began), policy, began)
    if not isinstance(job, Job):
        return _shown(outcome_of(name, job, None, began), reraise)
    ran = _ran(kind, Work(job, job.attempt, policy.timeout), cancelled)
    now = real_clock()
    last = last_moment(replace(job, since=began), policy.retry, now)
    disposition = decide(ran.outcome, job.attempt, policy.retry, last, now, lambda: chance)
    return _shown(outcome_of(name, disposition, ran, now), reraise)


def _policy(declared: KindPolicy, settings: str | Path | None) -> KindPolicy:
    said = overrides_of(kinds_in(settings))
    return Overridden(Policies({declared.kind: declared}), said).policy(declared.kind) or declared


def _admitted(message: Message, policy: KindPolicy, now: int) -> Job | Disposition:
    job = decode(message, DecodeRules())
    if isinstance(job, Refusal):
        return DeadLetter(Fault(job.code, "Refused", job.detail))
    return turned_away(message, job, policy, _ADMISSION, now) or job


def _ran(kind: Kind, work: Work, cancelled: bool) -> Ran:
    rehearsal = Rehearsal(kind, work, real_clock, cancelled=cancelled)
    if kind.offer.sort is Sort.CPU:
        return rehearse(rehearsal)
    forbid_a_running_loop("run()", "make the test a plain def, or 'await asyncio.to_thread(run, …)'")
    return asyncio.run(rehearse_async(rehearsal))


def _shown(outcome: RunOutcome, reraise: bool) -> RunOutcome:
    if reraise and outcome.exception is not None and not isinstance(outcome.exception, Refused):
        raise outcome.exception
    if reraise and outcome.status == "dead_letter":
        outcome.expect("succeeded")
    return outcome
