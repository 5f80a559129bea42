"""Upload local files to the landing bucket: single ones, or a batch with its manifest."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from access.ingestions.follow import TrackedIngestion, dropped
from functions.adapters.all import Adapters
from functions.adapters.landing import require_put
from functions.adapters.s3 import contracts_of
from lakegate.errors import LakegateError
from lakegate.job.batch import read_manifest
from lakegate.job.landing import BATCHES, MANIFEST
from lakegate.text import count, few, one_line

if TYPE_CHECKING:
    from lakegate.contract.model import Contract  # its YAML takes its time

_NOTHING = "Nothing was uploaded."


class BadTarget(LakegateError):
    """Table and key do not say where the files are to land."""

    def __init__(self, message: str) -> None:
        super().__init__("BAD_TARGET", message)


@dataclass(frozen=True)
class Target:
    """The place in the landing bucket: the prefix of a `table`, or a `key`.

    A `key` that ends in a slash is a prefix. With neither, it is the prefix of the only table.
    """

    table: str = ""
    key: str = ""

    def refuse_unfit(self, files: Sequence[Path]) -> None:
        """Raise BadTarget if the files cannot land there."""
        if not files:
            raise BadTarget("name a file")
        if any(map(is_manifest, files)):
            self._refuse_batch(files)
            self._refuse_names([self.key or files[0].resolve().parent.name])
        elif self.key and self.table:
            raise BadTarget("give a key or a table, not both")
        elif len(files) > 1 and self.key and not self.key.endswith("/"):
            raise BadTarget("with several files, the key must end in /")
        else:
            self._refuse_names([file.name for file in files])

    def _refuse_names(self, names: Sequence[str]) -> None:
        """Refuse names that S3 cannot have, and one that several files have."""
        name, many = Counter(names).most_common(1)[0]
        if many > 1:
            message = f"{many} files are named {one_line(name)}: each would be a version of one key"
            raise BadTarget(f"{message}; drop each with a key of its own")
        for part in (self.key, *([] if self.key and not self.key.endswith("/") else names)):
            if part.encode(errors="ignore").decode() != part:
                message = f"the name {one_line(part)} is no UTF-8, which S3 needs: rename the file"
                raise BadTarget(f"{message}, or give another key")

    def _refuse_batch(self, files: Sequence[Path]) -> None:
        if len(files) > 1:
            raise BadTarget(f"drop a {MANIFEST} alone: it lists the other files")
        if self.table:
            raise BadTarget("leave the table out: the manifest names the tables")
        if self.key and not re.fullmatch(f"{BATCHES}[^/]+/", self.key):
            raise BadTarget(f"a batch needs its own folder as its key: {BATCHES}NAME/")


def drop(adapters: Adapters, files: Sequence[Path], target: Target) -> Iterator[TrackedIngestion]:
    """Upload files, or the one batch of a manifest; yield each when it is uploaded.

    Raises BadTarget or LakegateError: WHICH_KEY, UNREADABLE_FILE, or what is wrong with a manifest.
    """
    target.refuse_unfit(files)
    _refuse_what_is_no_file(files)
    if any(map(is_manifest, files)):
        yield put_batch(adapters, files[0], target.key)
    elif target.key and not target.key.endswith("/"):
        yield put(adapters, files[0], target.key)
    else:
        prefix = target.key or _prefix(adapters, target.table)
        yield from (put(adapters, file, prefix + file.name) for file in files)


def _refuse_what_is_no_file(files: Sequence[Path]) -> None:
    others = [file for file in files if not file.is_file()]
    if missing := [str(file) for file in others if not file.exists()]:
        message = f"there is no file {', '.join(missing)}\n{_NOTHING}"
        raise LakegateError("UNREADABLE_FILE", message)
    if others:
        message = f"{others[0]} is a folder, a pipe or a device: drop plain files\n{_NOTHING}"
        raise LakegateError("UNREADABLE_FILE", message)


def _prefix(adapters: Adapters, table: str) -> str:
    in_force = contracts_of(adapters.lake, *filter(None, (table,))).values()
    return chosen((stored.contract for stored in in_force), table, " or `--key`").landing_prefix


def put(adapters: Adapters, file: Path, key: str) -> TrackedIngestion:
    """Upload a file under a key, without all of it in memory. Raises LakegateError."""
    with _opened(file) as body:
        return dropped(adapters.landing.put(key, body))


def is_manifest(file: Path) -> bool:
    """Return whether a file is the manifest of a batch."""
    return file.name == MANIFEST


def put_batch(adapters: Adapters, manifest: Path, key: str = "") -> TrackedIngestion:
    """Upload the files that a manifest lists from its folder, and the manifest last.

    They land in `batches/<folder>/`, or in `key`, which ends in a slash. Raises LakegateError for
    an invalid manifest, before anything is uploaded. A KeyboardInterrupt says what was uploaded.
    """
    prefix = key or f"{BATCHES}{manifest.resolve().parent.name}/"
    with _opened(manifest, _NOTHING) as opened:
        text = opened.read()
    listed = read_manifest(text, adapters.settings.limits)
    for each in listed:
        with _opened(manifest.parent / each.key, _NOTHING):
            pass
    uploaded = 0
    try:
        for each in listed:
            put(adapters, manifest.parent / each.key, prefix + each.key)
            uploaded += 1
        return dropped(adapters.landing.put(prefix + MANIFEST, text))
    except KeyboardInterrupt:
        if not uploaded:
            raise
        done = f"{uploaded:,} of {count(len(listed), 'file')} of the batch were uploaded"
        words = f"{done}, but not its manifest, so none is ingested: drop {manifest} again."
        raise KeyboardInterrupt(words) from None


@contextmanager
def _opened(file: Path, hint: str = "It was not uploaded.") -> Iterator[BinaryIO]:
    try:
        # Its upload would take its time before S3 refuses it.
        require_put(str(file), file.stat().st_size, f"\nUpload it by `aws s3 cp`. {hint}")
        with file.open("rb") as body:
            yield body
    except OSError as error:
        message = f"cannot read {file}: {error.strerror}\n{hint}"
        raise LakegateError("UNREADABLE_FILE", message) from error


def chosen(contracts: "Iterable[Contract]", table: str, instead: str = "") -> "Contract":
    """Return the contract of a table, or the only contract if no table ("") is named.

    Raises LakegateError WHICH_KEY if that does not determine one; it says what may be given
    `instead` of a table.
    """
    known = {contract.table: contract for contract in contracts}
    tables = few(sorted(known))
    if table and table not in known:
        message = f"there is no contract for {table}\nTables with a contract: {tables}"
        raise LakegateError("WHICH_KEY", message)
    if not table and len(known) != 1:
        message = f"for which table?\nAdd `--table`{instead}; tables with a contract: {tables}"
        raise LakegateError("WHICH_KEY", message)
    return known[table or next(iter(known))]
