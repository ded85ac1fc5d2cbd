"""The named places on a delivery's way where a crash matters most."""

from enum import StrEnum


class Checkpoint(StrEnum):
    """In the order of the journey. `AFTER_COMMIT`: an outcome was written; `AFTER_CONFIRM`: a copy was confirmed."""

    AFTER_CLAIM = "after_claim"
    AFTER_RUN = "after_run"
    AFTER_CONFIRM = "after_confirm"
    AFTER_COMMIT = "after_commit"
    BEFORE_ACK = "before_ack"
