"""A second copy of Lakegate and its fakes, in which some texts of the source are others."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

_OURS = ("functions", "lakegate", "tests")
# Log lines and metrics go where the test sends them, and texts that fit a schema still do.
_SHARED = ("functions.telemetry", "tests.fakes.schema")


@dataclass(frozen=True)
class Cut:
    """`text`, once in the source of `module`, gives way to `instead`."""

    module: str
    text: str
    instead: str


@contextmanager
def sabotaged(cuts: Sequence[Cut]) -> Iterator[None]:
    """Import Lakegate anew, with these cuts in its source.

    What is imported inside knows nothing of what was imported before, and the other way round.
    """
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if _ours(name)}
    finder = _Finder(cuts)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in filter(_ours, list(sys.modules)):
            del sys.modules[name]
        sys.modules.update(kept)


class _Finder(MetaPathFinder):
    def __init__(self, cuts: Sequence[Cut]) -> None:
        self._cuts = cuts

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        cuts = [cut for cut in self._cuts if cut.module == fullname]
        spec = PathFinder.find_spec(fullname, path) if cuts else None
        if spec and spec.origin:
            spec.loader = _Loader(fullname, spec.origin, cuts)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, cuts: Sequence[Cut]) -> None:
        super().__init__(name, path)
        self._cuts = cuts

    def get_code(self, fullname: str) -> CodeType:
        """The module's code, never a compiled file's."""
        source = self.get_source(fullname) or ""
        for cut in self._cuts:
            if source.count(cut.text) != 1:
                raise ImportError(f"{fullname} must have this text exactly once: {cut.text}")
            source = source.replace(cut.text, cut.instead)
        return self.source_to_code(source, self.path)


def _ours(module: str) -> bool:
    return module.partition(".")[0] in _OURS and module not in _SHARED
