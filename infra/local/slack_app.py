"""The app in the local Slack, and who is who there."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

TEAM = "T0LAKEGATE"
_FILE = "app.json"


@dataclass(frozen=True)
class App:
    """Where an app hears of what people press, and what Slack signs that with."""

    request_url: str
    signing_secret: str = field(repr=False)


def install(home: Path, app: App) -> None:
    """Have the Slack with this home tell the app from now on."""
    home.mkdir(parents=True, exist_ok=True)
    (home / _FILE).write_text(json.dumps(asdict(app)))


def installed(home: Path) -> App | None:
    """The app, None where there is none."""
    file = home / _FILE
    return App(**json.loads(file.read_text())) if file.exists() else None


def user_id(name: str) -> str:
    """The id of whoever has this name."""
    return "U0" + "".join(
        letter for letter in name.upper() if letter.isascii() and letter.isalnum()
    )
