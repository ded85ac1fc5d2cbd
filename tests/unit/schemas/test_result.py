import json

from jsonschema import Draft202012Validator

from consumer.core.delay import Ladder
from consumer.core.disposition import Retry
from consumer.core.job import Fault, Job, Message
from consumer.core.parcels import Copier
from consumer.core.row import Failure, Row, Status
from consumer.core.topology import build
from schemas.codes import Code
from schemas.dead_letter import DeadLetterHeaders
from schemas.export import exports
from schemas.result import JobResult

FAULT = Fault(Code.REJECTED, "Reject", "no such image", "Traceback …")


def test_a_row_of_the_store_is_shown_as_it_is() -> None:
    past = Failure(0, 1, 5, "attempts_exhausted", "OSError", "disk", "pod-1")
    row = Row("a", "k", Status.FAILED, attempt=2, fault=FAULT, history=(past,), finished_at=7, fingerprint=b"x")
    shown = JobResult.model_validate(row).model_dump(mode="json")
    assert (shown["status"], shown["attempt"], shown["result"], shown["finished_at"]) == ("failed", 2, None, 7)
    assert shown["error"] == {
        "code": "rejected",
        "error_type": "Reject",
        "message": "no such image",
        "traceback": "Traceback …",
    }
    assert shown["history"][0]["owner"] == "pod-1"
    Draft202012Validator(exports()["result.json"]).validate(shown)


def test_a_result_is_shown_as_the_json_that_it_is() -> None:
    row = Row("a", "k", Status.SUCCEEDED, result=b'{"count":1.5,"big":' + b"9" * 1000 + b"}")
    shown = JobResult.model_validate(row).model_dump_json()
    assert json.loads(shown)["result"] == {"count": 1.5, "big": int("9" * 1000)}


def test_every_status_and_field_that_is_shown_is_one_of_the_store() -> None:
    statuses = exports()["result.json"]["properties"]["status"]["enum"]
    assert sorted(statuses) == sorted(Status)
    fields = {"error": "fault"}
    assert {fields.get(name, name) for name in JobResult.model_fields} <= set(Row.__dataclass_fields__)


def test_the_headers_of_a_dead_letter_are_what_the_schema_says() -> None:
    copier = Copier(build("jobs", "default", Ladder("jobs"), 100), "pod-1")
    message = Message(b"{}", headers={"tenant": "x"}, message_id="k", type="a")
    retry = copier.retry(message, Job("a", "k", b"{}"), 1, Retry(2, 2000, "error", FAULT), 1000)
    dead = copier.dead(retry.message, FAULT, 2, 3000, "1d")
    headers = DeadLetterHeaders.model_validate(dead.message.headers)
    assert (headers.code, headers.error_type, headers.attempt, headers.dead_at) == (Code.REJECTED, "Reject", 2, 3000)
    assert [(past.attempt, past.code, past.pod) for past in headers.history] == [
        (1, Code.REJECTED, "pod-1"),
        (2, Code.REJECTED, "pod-1"),
    ]
    Draft202012Validator(exports()["dead-letter.headers.json"]).validate(dead.message.headers)
