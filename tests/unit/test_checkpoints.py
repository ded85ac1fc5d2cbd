from typing import get_args

from config.sections import Faults
from consumer.core.checkpoint import Checkpoint


def test_the_setting_knows_every_checkpoint_by_name() -> None:
    assert get_args(Faults.model_fields["crash_at"].annotation) == ("", *Checkpoint)
