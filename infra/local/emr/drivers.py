"""A Spark driver process and its messages.

The pipe protocol is one JSON object a line. To the driver's standard input:

    {"run": ID, "entry_point": PATH, "arguments": [...], "py_files": [PATH...], "conf": {...},
     "environment": {...},                    with these variables: the run's credentials, and what
     "executor_environment": {...},           its submission names for driver and executors
     "stdout": PATH, "stderr": PATH}          execute this run (only if no other is active)
    {"cancel": ID}                            cancel its Spark jobs; its end is still reported

From its standard output:

    {"ready": true}                           Spark is up
    {"run": ID}                               the run has begun
    {"run": ID, "exit": 0, "details": ""}     it ended, with this exit code and last error
    {"run": ID, …, "leaving": true}           and the driver ends too: tasks of the run are left
    {"run": ID, "exit": 137, "lost": WHY}     its process or the JVM died: the driver ends too

A driver ends at once when its standard input does: it never outlives the service.
"""

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from infra.local import processes

# What a job's process has although its submission names nothing. AWS documents no list ("Spark job
# properties" only has how to add variables), so this is what each process of a Linux image has.
# Java and Spark are set by the driver itself, and the credentials by each run.
_OF_EVERY_IMAGE = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")
# Where this machine's AWS is. It takes variables, which AWS's clients for Python and Java know: the
# job's code must not know that it runs here.
_OF_THIS_MACHINE = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")
# By these the stack finds what it started, and its Java starts faster.
_OF_THE_STACK = (processes.MARK, "JDK_JAVA_OPTIONS")
_KNOWN = (*_OF_EVERY_IMAGE, *_OF_THIS_MACHINE, *_OF_THE_STACK)


class Driver:
    """A running driver, used by one thread."""

    def __init__(self, command: Sequence[str], directory: Path) -> None:
        """Start the command in a new `directory/work`; what it prints goes to `directory/log`."""
        work = directory / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        self._log = directory / "log"
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                cwd=work,
                env={name: os.environ[name] for name in _KNOWN if name in os.environ},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
                text=True,
            )
        self._said: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.is_warm = False
        self._is_leaving = False
        threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True).start()

    @property
    def pid(self) -> int:
        """Return the process, which is the group of all that it started."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Return whether it can take a run."""
        return not self._is_leaving and self._process.poll() is None

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message. If the driver died, waiting for its answer shows that."""
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(message), file=self._process.stdin, flush=True)

    def answer(self, run_id: str, until: float) -> dict[str, Any]:
        """Return its next message about this run, until that time of the monotonic clock.

        If it died silently, that is `{"run": None, "lost": WHY}`. Raises TimeoutError.
        """
        while True:
            try:
                said = self._said.get(timeout=max(0, until - time.monotonic()))
            except queue.Empty:
                raise TimeoutError from None
            if said["run"] in (run_id, None):
                return said

    def kill(self) -> None:
        """End the driver and everything that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def _listen(self, output: Iterable[str]) -> None:
        for line in output:
            said = json.loads(line)
            if said.get("ready"):
                self.is_warm = True
            else:
                self._is_leaving |= said.get("leaving", False)
                self._said.put(said)
        code = self._process.wait()
        ended = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        why = f"The Spark driver died: it {ended}. Its log is {self._log}"
        self._said.put({"run": None, "lost": why})
