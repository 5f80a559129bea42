"""Runs ministack so that it keeps its state also when it is killed.

By itself ministack writes its state (S3's objects apart, which always are on disk) only when it is
stopped. Here it is written while it runs as well, so that a kill loses a few seconds at most. It
runs in ministack's own environment and imports nothing of this project.
"""

import asyncio
import hashlib
import json
import logging
import os
import signal
import time

from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack import app as ministack
from ministack.core import persistence

_SECONDS_BETWEEN_SAVES = 2.0
_SHARE_OF_TIME = 0.05  # that saving may take, however much there is to save
_ONLY_AT_THE_END = ("cloudwatch_logs",)  # long, always changing, and nothing depends on them


async def _save_regularly() -> None:
    saved: dict[str, str] = {}
    pause = _SECONDS_BETWEEN_SAVES
    while True:
        await asyncio.sleep(pause)
        begin = time.monotonic()
        try:
            _save_changes(saved)
        except RuntimeError:  # a dict that a Lambda's thread changed while it was read: next time
            logging.getLogger("ministack").info("state changed while it was saved; trying again")
        pause = max(_SECONDS_BETWEEN_SAVES, (time.monotonic() - begin) / _SHARE_OF_TIME)


def _save_changes(saved: dict[str, str]) -> None:
    """Write each service's state that is not the one `saved` remembers.

    Not in the middle of a deployment: half a stack could neither be updated nor created again.
    """
    services = ministack._build_persistence_save_dict()  # noqa: SLF001
    states = {name: state() for name, state in services.items() if name not in _ONLY_AT_THE_END}
    if "_IN_PROGRESS" in json.dumps(_statuses(states.get("cloudformation"))):
        return
    for name, state in states.items():
        text = json.dumps(state, default=persistence._json_default)  # noqa: SLF001
        digest = hashlib.sha256(text.encode()).hexdigest()
        if state is not None and saved.get(name) != digest:
            persistence.save_state(name, state)
            saved[name] = digest


def _statuses(cloudformation: dict | None) -> list[str]:
    stacks = cloudformation["stacks"]._data.values() if cloudformation else []  # noqa: SLF001
    return [stack.get("StackStatus", "") for stack in stacks]


async def _run() -> None:
    config = Config()
    config.bind = [f"{os.environ['BIND_HOST']}:{os.environ['GATEWAY_PORT']}"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = 1
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    saving = asyncio.create_task(_save_regularly())
    await serve(ministack.app, config, shutdown_trigger=stop.wait)
    saving.cancel()


if __name__ == "__main__":
    asyncio.run(_run())
