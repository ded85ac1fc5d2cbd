"""Users of the broker, whose password and permissions a test changes."""

from tests.support.rabbit import Rabbit


class User:
    """A user of one virtual host, in the broker's own words."""

    def __init__(self, rabbit: Rabbit, vhost: str) -> None:
        self._rabbit = rabbit
        self._vhost = vhost
        self.name = f"user of {vhost}"
        self._tell("add_user", self.name, "first")
        self.may()

    def has_password(self, password: str) -> None:
        self._tell("change_password", self.name, password)

    def may(self, configure: str = ".*", write: str = ".*", read: str = ".*") -> None:
        self._tell("set_permissions", self.name, self._vhost, configure, write, read)

    def drop(self) -> None:
        self._tell("delete_user", self.name)

    def _tell(self, function: str, *arguments: str) -> None:
        given = ", ".join(map(binary, (*arguments, "tests")))
        self._rabbit.evaluate(f"ok = rabbit_auth_backend_internal:{function}({given})")


def binary(text: str) -> str:
    return f"<<{','.join(map(str, text.encode()))}>>"
