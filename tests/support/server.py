"""What every server that tests start can be told."""

import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

from tests.support.leash import Leash


class Server:
    """One server on loopback, with a folder of its own. Who inherits starts it, and says which `process` it is."""

    process: str
    _folder: Path
    _leash: Leash

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()

    def stop(self) -> None:
        self._leash.stop()

    def kill(self) -> None:
        """End it as a power failure would."""
        self._leash.kill(self.process)

    def paused(self) -> AbstractContextManager[None]:
        """Freeze it for a while: its connections stay open and silent."""
        return self._leash.paused(self.process)

    def drop(self) -> None:
        """Kill it and remove its data."""
        self._leash.drop()
        shutil.rmtree(self._folder, ignore_errors=True)
