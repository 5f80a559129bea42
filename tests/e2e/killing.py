"""The stack's processes, and ways to kill, freeze and restart them."""

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import requests
from botocore.exceptions import BotoCoreError, ClientError

from access.deployment.checkout import ROOT
from cli.local import stack as local_stack
from infra.local import ministack, processes
from infra.local.parts import known_ports, parts
from tests.e2e.conftest import PAUSE, Gate
from tests.waiting import PATIENCE, eventually

_PROC = Path("/proc")
_ESTABLISHED = "01"


def pid(gate: Gate, part: str) -> int:
    """Return the id of the part's process."""
    record = processes.running(gate.home, part)
    assert record, f"{part} does not run"
    return record.pid


def kill(gate: Gate, *names: str) -> None:
    """End parts at once, as a power cut does; return when the last has ended."""
    for found in [pid(gate, name) for name in names]:
        os.kill(found, signal.SIGKILL)
    eventually(lambda: not any(processes.running(gate.home, name) for name in names))


def start(gate: Gate, name: str) -> None:
    """Start one part again, and return when it answers."""
    known = parts(gate.home, ROOT, known_ports(gate.home), gate.stack.reader_token)
    processes.start(gate.home, known[name].command)
    known[name].wait(gate.home)


def up(gate: Gate) -> None:
    """Run `lakegate up` to restart the parts that are down."""
    assert local_stack.start(lambda _: None) == gate.stack


def freeze(gate: Gate, part: str) -> None:
    """Stop a part's process, so that it neither answers nor refuses."""
    os.kill(pid(gate, part), signal.SIGSTOP)


@contextmanager
def frozen(gate: Gate, part: str) -> Iterator[None]:
    """Freeze a part for a while."""
    freeze(gate, part)
    try:
        yield
    finally:
        os.kill(pid(gate, part), signal.SIGCONT)


def request_waits(gate: Gate, part: str) -> bool:
    """Return whether the part has received a request that it has not read."""
    port = f":{known_ports(gate.home)[part]:04X}"
    lines = [line.split() for name in ("tcp", "tcp6") for line in _connections(name)]
    return any(
        here.endswith(port) and state == _ESTABLISHED and int(queues.partition(":")[2], 16)
        for _, here, _, state, queues, *_ in lines
    )


def spark(gate: Gate) -> dict[str, int]:
    """Return the processes of a Spark at work: "driver", its "jvm" and the "run"; {} of none."""
    return next((each for each in sparks(gate) if "run" in each), {})


def sparks(gate: Gate) -> list[dict[str, int]]:
    """Return the processes of each Spark, as `spark` does; the one kept warm comes first."""
    return [_family(driver) for driver in _drivers(gate)]


def sweep(gate: Gate) -> None:
    """Run the sweep, as the schedule does once a minute."""
    eventually(partial(_swept, gate), PATIENCE, "the sweep does not run", PAUSE)


def _swept(gate: Gate) -> bool:
    """Return whether the sweep ran: ministack ends its process if the settings were changed."""
    function = gate.stack.functions["sweep"]
    answer = ministack.client("lambda", gate.stack.s3).invoke(FunctionName=function, Payload=b"{}")
    error = json.load(answer["Payload"]) if "FunctionError" in answer else {}
    assert not error or "process exited" in error["errorMessage"], error
    return not error


@contextmanager
def sweeping(gate: Gate, seconds: float) -> Iterator[None]:
    """Sweep at this interval while the stack answers, to find soon what a kill lost."""
    over = Event()

    def work() -> None:
        while not over.wait(seconds):
            with suppress(BotoCoreError, ClientError, AssertionError):
                sweep(gate)

    beside = Thread(target=work)
    beside.start()
    try:
        yield
    finally:
        over.set()
        beside.join()


@contextmanager
def sweep_grace(gate: Gate, seconds: int) -> Iterator[None]:
    """Set the grace time that the deployed sweep leaves for events."""
    functions, name = ministack.client("lambda", gate.stack.s3), gate.stack.functions["sweep"]
    before = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    other = {**before, "LAKEGATE_GRACE_SECONDS": str(seconds)}
    functions.update_function_configuration(FunctionName=name, Environment={"Variables": other})
    try:
        yield
    finally:
        functions.update_function_configuration(
            FunctionName=name, Environment={"Variables": before}
        )


def calm(gate: Gate) -> None:
    """Return when a warm Spark waits for work; kill shared runs that wait for more files."""
    busy = [driver for driver in _drivers(gate) if driver["warm"] and "run" in _family(driver)]
    for driver in busy:
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(_family(driver)["run"], signal.SIGKILL)
    ending = {driver["pid"] for driver in busy}  # with their runs

    def waits() -> bool:
        found = [driver for driver in _drivers(gate)[:1] if driver["pid"] not in ending]
        return any(driver["warm"] and "run" not in _family(driver) for driver in found)

    eventually(waits, PATIENCE, "Spark is not warm", PAUSE)


def _drivers(gate: Gate) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = requests.get(
        f"{gate.stack.emr}/_health", timeout=PATIENCE
    ).json()["drivers"]
    return found


def _family(driver: Mapping[str, Any]) -> dict[str, int]:
    """Return a driver and its children by name; before it is warm they may be any."""
    pid = int(driver["pid"])
    return {"driver": pid, **{_program(child): child for child in _children(pid)}}


def _connections(protocol: str) -> list[str]:
    return (_PROC / "net" / protocol).read_text().splitlines()[1:]


def _children(parent: int) -> list[int]:
    try:
        text = (_PROC / str(parent) / "task" / str(parent) / "children").read_text()
    except OSError:
        return []  # it is gone
    return [int(child) for child in text.split()]


def _program(process: int) -> str:
    try:
        program = (_PROC / str(process) / "cmdline").read_bytes().split(b"\0")[0]
    except OSError:
        return "gone"
    return "jvm" if program.endswith(b"java") else "run"
