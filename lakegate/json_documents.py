"""JSON that others wrote."""

import json
from typing import Any


def load_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises ValueError for every text that is none, those too deeply nested for Python included,
    which the standard library tells by RecursionError.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
