"""A file as Arrow reads it: at any place, of which the bytes are requested then."""

import io
from collections.abc import Callable

# Returns so many bytes from a place of a file.
ReadAt = Callable[[int, int], bytes]


class Stream(io.RawIOBase):
    """A file of `size` bytes, of which `read_at` returns those that are read."""

    def __init__(self, size: int, read_at: ReadAt, at: int = 0) -> None:
        super().__init__()
        self._size = size
        self._read_at = read_at
        self._at = at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        left = max(self._size - self._at, 0)
        wanted = left if size < 0 else min(size, left)
        part = self._read_at(self._at, wanted) if wanted else b""
        self._at += len(part)
        return part
