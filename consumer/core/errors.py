"""The errors that cross rooms.

ConsumerError
├── SettingsError      exit 2    a setting is wrong; says which and what is wanted
├── JobModulesError    exit 3    job modules can't be imported or contradict each other
├── TopologyError      exit 4    queues or exchanges on the broker differ from what we need
├── Unfinished         exit 1    a command stopped half-way, or had nothing to do; says how far it came
├── StoreRefused                 the store works, and can't hold this one item: no use in trying it again
└── Unavailable                  our own I/O failed; never the job's fault, never fatal
    ├── StoreUnavailable
    ├── BuriedTooMany            the dead-letter breaker is open
    └── BrokerUnavailable
        ├── BrokerRefused        user or password refused: at the very start that is a setting
        └── PublishFailed        returned, nacked, timed out (then unknown: it may land later) or no channel
"""


class ConsumerError(Exception):
    """Its text is one sentence for a person, without secrets or payloads."""

    exit_code = 70


class SettingsError(ConsumerError):
    exit_code = 2


class JobModulesError(ConsumerError):
    exit_code = 3


class TopologyError(ConsumerError):
    exit_code = 4


class Unfinished(ConsumerError):
    exit_code = 1


class StoreRefused(ConsumerError):
    """Whoever meets it gives up the one job that it is about; everybody else goes on."""

    exit_code = 1


class Unavailable(ConsumerError):
    """Something of ours is away. Whoever meets it gives the delivery back and tries again later.

    The daemon never exits for it; a command does, with 1.
    """

    exit_code = 1


class StoreUnavailable(Unavailable):
    pass


class BuriedTooMany(Unavailable):
    """`seconds` until it is worth another try."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"nearly all jobs are dead-lettered, so nothing is taken in for {seconds:g} s: look at 'consumer dead list "
            "--groups', and at what was deployed last"
        )
        self.seconds = seconds


class BrokerUnavailable(Unavailable):
    pass


class BrokerRefused(BrokerUnavailable):
    pass


class PublishFailed(BrokerUnavailable):
    """`result` is one of returned, nacked, timeout, error: the label of publishes_total."""

    def __init__(self, message: str, result: str) -> None:
        super().__init__(message)
        self.result = result
