"""What the local AWS's IAM was asked, by each caller of a stack."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def asked(home: Path) -> Iterator[Mapping[str, Any]]:
    """Yield each request's caller (`who`), action, resource, condition keys, and if it is allowed.

    `home` is the stack's or the account's folder.
    """
    for line in (home / "ministack" / "asked.jsonl").read_text().splitlines():
        with suppress(ValueError):  # a kill can cut a line
            yield json.loads(line)
