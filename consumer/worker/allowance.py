"""How much memory a child may have. Pure."""

PARENT = 128 * 1024 * 1024
"""What the daemon itself is left of the container's memory."""
LEAST = 64 * 1024 * 1024
"""A child may have this much beyond what it begins with, however small the container is."""


def room_of(container: int) -> int:
    """What zygote and children may have together; 0 for no limit."""
    return max(container - PARENT, 1) if container else 0


def allowance(*, explicit: int, container: int, children: int, used: int) -> int:
    """Bytes of data for each of `children`, who begin with `used` bytes that they share; 0 for no limit.

    `explicit` is what the settings say: negative for no limit, 0 for a share of what the `container` may have, where
    that is limited at all.
    """
    if explicit:
        return max(explicit, 0)
    if not container:
        return 0
    return used + max((room_of(container) - used) // children, LEAST)
