"""The file that names a running or stopped local stack, for the command line and the tests."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lakegate.errors import LakegateError

# The file that marks a copy of the project, which is in a home (infra/local/own_project.py).
COPIED = "release"


@dataclass(frozen=True)
class Stack:
    """Addresses and names for clients, and `env`, the settings of command line and tests.

    `reader_token` reads the catalog. `queues` and `functions` map a purpose to a URL or a name.
    """

    s3: str
    nessie: str
    iceberg: str
    emr: str
    slack: str
    landing_bucket: str
    lake_bucket: str
    ledger_table: str
    reader_token: str = field(repr=False)
    queues: dict[str, str]
    functions: dict[str, str]
    env: dict[str, str]


def read(home: Path) -> Stack:
    """Return the running or last stack.

    Raises LakegateError NO_STACK if there never was one, or its file is cut or another version's,
    HOME_REFUSED without the right to read it.
    """
    try:
        return Stack(**json.loads((home / "stack.json").read_text()))
    except (FileNotFoundError, ValueError, TypeError):  # a full disk leaves an empty one
        message = (
            f"no stack in {home}\nRun `lakegate up`, or name one on AWS: `lakegate --stage STAGE`."
        )
        raise LakegateError("NO_STACK", message) from None
    except OSError as error:
        raise refused(home, error) from error


def refused(home: Path, error: OSError) -> LakegateError:
    """Return why this user cannot have, or use, the stack at a home."""
    message = f"{error.filename} cannot be used: {error.strerror}"
    remedy = f"Is the stack in {home} another user's? Name a folder of your own by LAKEGATE_HOME."
    return LakegateError("HOME_REFUSED", f"{message}\n{remedy}")


def write(home: Path, stack: Stack) -> None:
    """Store this stack for `read`."""
    file = home / "stack.json"
    file.touch(mode=0o600)
    file.chmod(0o600)  # it has the reader's token
    file.write_text(json.dumps(asdict(stack), indent=2) + "\n")
