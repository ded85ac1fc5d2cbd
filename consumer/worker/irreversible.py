"""Notes when a job does to its process what can't be undone, or may be so, at no cost to the jobs that don't.

Looking for it after each job would take a system call for each limit and each descriptor. So the few functions that
do it are wrapped, in the zygote, before the job modules are imported. Called in a program that a job starts, they
concern that one only.
"""

import functools
import os
import resource
from types import ModuleType
from typing import Any

DESCRIPTORS = "replaced descriptors"
_FUNCTIONS = (
    (os, DESCRIPTORS, ("dup2",)),
    (resource, "resource limits", ("setrlimit", "prlimit")),
    (os, "priority", ("nice", "setpriority")),
    (os, "scheduling", ("sched_setaffinity", "sched_setscheduler", "sched_setparam")),
    (os, "user or root folder", ("setuid", "seteuid", "setreuid", "setresuid", "setgid", "setegid", "setregid")),
    (os, "user or root folder", ("setresgid", "setgroups", "initgroups", "chroot")),
    (os, "process group", ("setpgid", "setsid")),
)

done: list[str] = []
"""What was done in this process since it was forked."""


def watch() -> None:
    """Wrap them, once a zygote."""
    for module, what, names in _FUNCTIONS:
        for name in names:
            _wrap(module, name, what)


def _wrap(module: ModuleType, name: str, what: str) -> None:
    function = getattr(module, name)

    @functools.wraps(function)
    def noted(*args: Any, **named: Any) -> Any:
        done.append(what)
        return function(*args, **named)

    setattr(module, name, noted)
