"""The message of a follow-up, and where it goes."""

from dataclasses import replace

from consumer.core.outbox import Outgoing
from consumer.core.ports import Parcel
from consumer.core.row import Row, Status
from consumer.core.sweep import request
from consumer.core.topology import Topology
from schemas import headers

TARGET = "follow_up"


def parcel(outgoing: Outgoing, topology: Topology, now: int) -> Parcel:
    """The same message however often it is sent, so that its key absorbs all but one.

    Only our own queue is surely behind the delay ladder. A follow-up for another one waited in the store.
    """
    row = Row(
        outgoing.kind,
        outgoing.key,
        Status.PENDING,
        payload=outgoing.payload,
        submitted_at=outgoing.submitted_at,
        due_at=outgoing.due,
        deadline=outgoing.deadline,
    )
    message = request(row)
    if outgoing.traceparent is not None:
        message = replace(message, headers={**message.headers, headers.TRACEPARENT: outgoing.traceparent})
    wait = 0 if outgoing.due is None or outgoing.queue is not None else outgoing.due - now
    if wait > 0:
        exchange, routing_key = topology.ladder.route(wait, topology.queue)
        return Parcel(exchange, routing_key, message, TARGET)
    return Parcel(topology.namespace, outgoing.queue or topology.queue, message, TARGET)
