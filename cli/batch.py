"""`lakegate drop` of a batch: the files that a manifest names, and then the manifest."""

from pathlib import Path

from cli.follow import Sight, dropped
from functions.world import World
from lakegate.batch import read_manifest
from lakegate.errors import LakegateError
from lakegate.landing import BATCHES, MANIFEST


def is_manifest(file: Path) -> bool:
    """Whether a file is one that makes those beside it a batch."""
    return file.name == MANIFEST


def put_batch(world: World, manifest: Path, key: str = "") -> Sight:
    """Upload the files that a manifest names, from its folder, and the manifest last.

    They land in `batches/<folder>/`, or in `key`, which ends in a slash. Raises LakegateError,
    before anything is uploaded, where the manifest cannot be kept.
    """
    prefix = key or f"{BATCHES}{manifest.resolve().parent.name}/"
    text = _read(manifest)
    listed = read_manifest(text, world.settings.limits)
    bodies = {each.key: _read(manifest.parent / each.key) for each in listed}
    for name, body in bodies.items():
        world.landing.put(prefix + name, body)
    return dropped(world.landing.put(prefix + MANIFEST, text))


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        message = f"{file} cannot be read, and nothing was uploaded: {error.strerror}"
        raise LakegateError("UNREADABLE_FILE", message) from error
