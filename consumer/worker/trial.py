"""A process that says whether a payload would be accepted: it imports the job modules, checks it, and ends.

It is told all at once on its stdin: a line of JSON {modules, path, kind, pointer, depth, parent}, then the body. It
answers with one object on its stdout: {} where all is well, {objection} about the payload, {error} about the modules.
"""

import json
import os
import sys
from typing import Any

from consumer.worker import process
from consumer.worker.failure import Refused
from consumer.worker.loading import LoadError, load
from consumer.worker.payload import checked


def main() -> None:
    line, _, body = sys.stdin.buffer.read().partition(b"\n")
    order = json.loads(line)
    process.die_with(order["parent"])
    with os.fdopen(os.dup(1), "w") as answer:
        os.dup2(2, 1)  # what the modules print is no answer
        json.dump(_tried(order, body), answer)


def _tried(order: dict[str, Any], body: bytes) -> dict[str, str]:
    try:
        kinds = load(order["modules"], order["path"])
    except LoadError as error:
        return {"error": str(error)}
    kind = kinds.get(order["kind"])
    if kind is None:
        return {"objection": f"no handler is declared for kind {order['kind']!r}"}
    try:
        checked(kind, body, order["pointer"], order["depth"])
    except Refused as refusal:
        return {"objection": f"{refusal.code}: {refusal}"}
    return {}


if __name__ == "__main__":
    main()
