"""The table reader's errors."""

import pytest

from access.tables import Reader
from lakegate.errors import LakegateError
from tests.fakes.wire import answering

_JSON = b'{"defaults": {}, "overrides": {}, "namespaces": []}'
_EMPTY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"


def test_a_name_without_a_namespace_is_no_table() -> None:
    """A name without a namespace raises an error that lists the tables."""
    with answering(_EMPTY % (len(_JSON), _JSON)) as address:
        reader = Reader(address, "token", "main")
        with pytest.raises(LakegateError, match=r"UNKNOWN_TABLE.*its tables are: none"):
            reader.state("orders")
