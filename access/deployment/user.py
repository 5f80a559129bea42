"""The name of the person who uses this machine."""

import getpass


def user_name() -> str:
    """Return the user's name; "" where the system knows none, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # Python 3.13 raises the second
        return ""
