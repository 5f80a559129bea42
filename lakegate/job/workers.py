"""The sizes of EMR Serverless's workers (User Guide, "Supported worker configurations")."""

from math import ceil

# Gigabytes of a worker by its vCPUs: the least, the most, and to whose multiples EMR rounds up.
_GIGABYTES = {1: (2, 8, 1), 2: (4, 16, 1), 4: (8, 30, 1), 8: (16, 60, 4), 16: (32, 120, 8)}


def bounds(cores: int) -> tuple[int, int]:
    """Return the least and the most gigabytes of a worker with so many vCPUs."""
    least, most, _ = _GIGABYTES[cores]
    return least, most


def rounded(cores: int, gigabytes: float) -> int:
    """Return the gigabytes that a worker gets, and that are billed, if it needs so many."""
    step = _GIGABYTES[cores][2] if cores in _GIGABYTES else 1
    return step * ceil(gigabytes / step)
