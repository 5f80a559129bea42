"""Marks in memory."""


class FakeMarks:
    """Of each table the largest position that was ever put."""

    def __init__(self) -> None:
        self._positions: dict[str, int] = {}

    def position(self, table: str) -> int:
        """See Marks.position."""
        return self._positions.get(table, 0)

    def put(self, table: str, position: int) -> None:
        """See Marks.put."""
        self._positions[table] = max(position, self.position(table))
