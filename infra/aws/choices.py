"""What a team chose for a stage: the template's parameters, in `stages/<stage>.yml`."""

from pathlib import Path

import yaml

from lakegate.errors import LakegateError


def choices(file: Path) -> dict[str, str]:
    """The parameters that a stage's file sets, none without a file. Raises LakegateError."""
    if not file.exists():
        return {}
    try:
        found = yaml.safe_load(file.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise LakegateError("BAD_SETTING", f"{file} cannot be read: {error}") from error
    if not isinstance(found or {}, dict):
        raise LakegateError("BAD_SETTING", f"{file} must have names and values: SlackChannel: …")
    return {str(name): str(value) for name, value in (found or {}).items()}
