"""Why a connection did not come about, in the words of the system: for the broker and the database."""

import os

NO_CONNECT = "Connect call failed"
"""What asyncio says for whatever reason: only the number tells a closed port from a host that can't be reached."""


def why_not(error: OSError) -> str | None:
    """None where it is another error, which has words of its own."""
    return os.strerror(error.errno) if error.errno and NO_CONNECT in str(error) else None
