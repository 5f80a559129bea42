"""Run ministack so that it keeps its state when it is killed.

ministack writes its state (except S3's objects, which always are on disk) only when it is stopped.
Here it is written while ministack runs: a kill loses a few seconds at most, and of DynamoDB and of
messages sent to SQS nothing, because AWS never loses an acknowledged write. Messages that were
deleted in these seconds come once more. It runs in ministack's own environment and imports nothing
of this project.
"""

import asyncio
import hashlib
import json
import logging
import mmap
import os
import signal
import time
import zipfile
from contextvars import ContextVar
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import IO, Any

import ministack_iam
import ministack_keys
from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack import app as ministack
from ministack.core import lambda_runtime, persistence
from ministack.services import dynamodb, eventbridge, lambda_svc, s3, sqs, sts
from ministack.services.cloudformation import provisioners

_SECONDS_BETWEEN_SAVES = 2.0
_SHARE_OF_TIME = 0.05  # the largest part of the time that saving may take
_MESSAGE = "message"  # the kind of a change in SQS; one in DynamoDB begins with its table
_ONLY_AT_THE_END = ("cloudwatch_logs",)  # long, always changing, and not needed


class _Journal:
    """The changes in DynamoDB, and the messages sent to SQS, since the state was last saved.

    A line has all changes of one request: a kill leaves all or nothing of a transaction.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file: IO[str] | None = None
        self._changes: list[tuple[Any, ...]] = []

    def attach(self) -> None:
        """Write each change here before its request is answered."""
        set_item, remove_item = dynamodb._set_item, dynamodb._remove_item  # noqa: SLF001
        handle = dynamodb.handle_request

        def set_and_note(table: dict, hash_key: str, range_key: str, item: dict) -> dict | None:
            self._changes.append((table["TableArn"], hash_key, range_key, item))
            return set_item(table, hash_key, range_key, item)

        def remove_and_note(table: dict, hash_key: str, range_key: str) -> dict | None:
            self._changes.append((table["TableArn"], hash_key, range_key, None))
            return remove_item(table, hash_key, range_key)

        async def handle_and_write(*request: Any) -> Any:
            try:
                return await handle(*request)
            finally:
                self._write()

        dynamodb._set_item, dynamodb._remove_item = set_and_note, remove_and_note  # noqa: SLF001
        dynamodb.handle_request = handle_and_write
        self._attach_to_queues()

    def _attach_to_queues(self) -> None:
        send = sqs._act_send_message  # noqa: SLF001

        def send_and_write(request: dict, address: str) -> dict:
            answer, url = send(request, address), request.get("QueueUrl", address)
            newest = sqs._get_q(url)["messages"][-1:]  # noqa: SLF001
            if newest and newest[0]["id"] == answer["MessageId"]:  # else it is a duplicate
                self._changes.append((_MESSAGE, url, newest[0]))
                self._write()
            return answer

        sqs._act_send_message = send_and_write  # noqa: SLF001
        sqs._HANDLERS["SendMessage"] = send_and_write  # noqa: SLF001

    def replay(self) -> None:
        """Apply the changes again; they may be in the saved state already."""
        for file in self._files():
            for line in file.read_text().splitlines():
                try:
                    changes = json.loads(line)
                except ValueError:
                    break  # killed while it was written: it was never acknowledged
                for change in changes:
                    _redo(*change)

    def turn(self) -> list[Path]:
        """Return the files so far and write later changes to a new one."""
        if self._file:
            self._file.close()
        self._file = None
        return self._files()

    def _write(self) -> None:
        if not self._changes:
            return
        if not self._file:
            self._file = (self._directory / f"changes-{time.time_ns()}.journal").open("a")
        print(json.dumps(self._changes), file=self._file, flush=True)
        self._changes.clear()

    def _files(self) -> list[Path]:
        return sorted(self._directory.glob("changes-*.journal"))


def _redo(kind: str, *change: Any) -> None:
    """Queue the message again, or store or remove the item."""
    if kind == _MESSAGE:
        _queue_again(*change)
    else:
        _store_again(kind, *change)


def _queue_again(url: str, message: dict) -> None:
    """Add the message to its queue, unless it is there or the queue was deleted."""
    queue = sqs._queues.get(url)  # noqa: SLF001
    if queue and all(each["id"] != message["id"] for each in queue["messages"]):
        queue["messages"].append({**message, "receive_count": 0})


def _store_again(arn: str, hash_key: str, range_key: str, item: dict | None) -> None:
    """Store the item or remove it if there is none, unless its table was deleted."""
    _, _, _, region, account, name = arn.split(":", 5)
    table = dynamodb._tables.get_scoped(account, region, name.partition("/")[2])  # noqa: SLF001
    if table is None:
        return
    if item is None:
        dynamodb._remove_item(table, hash_key, range_key)  # noqa: SLF001
    else:
        dynamodb._set_item(table, hash_key, range_key, item)  # noqa: SLF001


async def _save_regularly(journal: _Journal) -> None:
    saved: dict[str, str] = {}
    pause = _SECONDS_BETWEEN_SAVES
    while True:
        await asyncio.sleep(pause)
        begin = time.monotonic()
        try:
            _save_changes(saved, journal)
        except RuntimeError:  # a Lambda's thread changed the dict while it was read: next time
            logging.getLogger("ministack").info("state changed while it was saved; trying again")
        pause = max(_SECONDS_BETWEEN_SAVES, (time.monotonic() - begin) / _SHARE_OF_TIME)


def _save_changes(saved: dict[str, str], journal: _Journal) -> None:
    """Write the state of each service that differs from `saved`.

    Not during a deployment: half a stack could neither be updated nor created again.
    """
    superseded = journal.turn()
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
    for file in superseded:
        file.unlink()


def _statuses(cloudformation: dict | None) -> list[str]:
    stacks = cloudformation["stacks"]._data.values() if cloudformation else []  # noqa: SLF001
    return [stack.get("StackStatus", "") for stack in stacks]


def _remember_sessions(file: Path) -> None:
    """Keep credentials across a kill, so that their holders can go on.

    Credentials that do not expire are the functions', which a kill ends.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = file.read_text().splitlines() if file.exists() else []
    known = (json.loads(line) for line in lines if line.endswith("]"))
    live = {key: session for key, session in known if session.get("Expiration", 0) > time.time()}
    sts._sessions.update(live)  # noqa: SLF001
    file.write_text("".join(f"{json.dumps(each)}\n" for each in live.items()))
    register = sts.register_session

    def register_and_note(key: str, session: dict[str, Any]) -> None:
        register(key, session)
        with file.open("a") as notes:
            notes.write(f"{json.dumps([key, session])}\n")

    sts.register_session = register_and_note


def _take_numbers() -> None:
    """Read a mapping's concurrency as a number even if a parameter sets it."""
    concurrency = lambda_svc._sqs_esm_concurrency  # noqa: SLF001
    lambda_svc._sqs_esm_concurrency = lambda *given: int(concurrency(*given))  # noqa: SLF001


def _take_queries() -> None:
    """Take alarms on queries, which ministack refuses: here no alarm ever rings."""
    record = provisioners._cw_metric_alarm_record  # noqa: SLF001

    def record_any(name: str, props: dict) -> dict:
        asked = props.get("Metrics", [])
        texts = {"Namespace": "queries", "MetricName": str(asked)} if asked else {}
        return dict(record(name, {**props, "Metrics": [], **texts}))

    provisioners._cw_metric_alarm_record = record_any  # noqa: SLF001


class _Mapped:
    """An object's file, of which only the parts that are taken are read, not all of it."""

    def __init__(self, path: str, _mode: str) -> None:
        self._path = Path(path)

    def __enter__(self) -> "_Mapped":
        return self

    def __exit__(self, *_: object) -> None:
        """Close nothing: the memory map holds the file."""

    def read(self) -> mmap.mmap | bytes:
        with self._path.open("rb") as file:
            is_empty = not self._path.stat().st_size  # which cannot be mapped
            return b"" if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _cut_versions() -> None:
    """Answer a request for a range of an object's version with that range alone.

    Only the range is read from disk, as a large object is read by many requests.
    """
    get = s3._get_object  # noqa: SLF001

    def get_range(bucket: str, key: str, headers: dict, query: dict | None = None) -> Any:
        range_ = headers.get("range", "")
        if not range_:
            return get(bucket, key, headers, query)
        # S3 does not send the object's checksum with a part either.
        rest = {name: text for name, text in headers.items() if name != "x-amz-checksum-mode"}
        s3.open = _Mapped
        try:
            status, answer, body = get(bucket, key, rest, query)
        finally:
            del s3.open
        if status != 200:
            return status, answer, body
        part = s3._parse_range(range_, len(body))  # noqa: SLF001
        if not part:
            return 416, {"Content-Range": f"bytes */{len(body)}"}, b""
        length = {"Content-Range": f"bytes {part[0]}-{part[1]}/{len(body)}"}
        cut = body[part[0] : part[1] + 1]
        return 206, {**answer, **length, "Content-Length": str(len(cut))}, cut

    s3._get_object = get_range  # noqa: SLF001


def _tell_versions() -> None:
    """Let S3's events through EventBridge name the version, as AWS's do in a versioned bucket."""
    fire, dispatch = s3._fire_s3_event, eventbridge._dispatch_event  # noqa: SLF001
    told: ContextVar[str | None] = ContextVar("version", default=None)

    def fire_with_version(*event: Any, **more: Any) -> None:
        told.set(more.get("version_id"))
        fire(*event, **more)

    def dispatch_with_version(event: dict, *more: Any) -> Any:
        if event.get("Source") == "aws.s3" and (version := told.get()):
            detail = json.loads(event["Detail"])
            detail["object"]["version-id"] = version
            event = {**event, "Detail": json.dumps(detail)}
        return dispatch(event, *more)

    s3._fire_s3_event = fire_with_version  # noqa: SLF001
    eventbridge._dispatch_event = dispatch_with_version  # noqa: SLF001


def _keep_versions_on_disk() -> None:
    """Hold no object in memory: a version's bytes are in its file, and are read from there."""
    entry = s3._version_entry_from_record  # noqa: SLF001
    s3._version_entry_from_record = lambda of, version, _body: entry(of, version, None)  # noqa: SLF001


def _share_code(codes: Path) -> None:
    """Unpack each version of the functions' code once: for each worker it would take seconds."""
    unpacking = Lock()

    class UnpackedOnce(zipfile.ZipFile):
        def extractall(self, path: Any = None, *_: Any) -> None:
            code = codes / hashlib.sha256(Path(str(self.filename)).read_bytes()).hexdigest()
            with unpacking:
                if not code.exists():
                    super().extractall(codes / "new")
                    (codes / "new").rename(code)
            Path(path).rmdir()
            Path(path).symlink_to(code)

    lambda_runtime.zipfile = SimpleNamespace(**{**vars(zipfile), "ZipFile": UnpackedOnce})


async def _run() -> None:
    config = Config()
    config.bind = [f"{os.environ['BIND_HOST']}:{os.environ['GATEWAY_PORT']}"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = 1
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    state = Path(os.environ["STATE_DIR"])
    ministack_iam.note_requests(state.with_name("asked.jsonl"))  # first: what IAM is asked at last
    ministack_iam.complete()
    ministack_keys.enforce_keys()
    _take_numbers()
    _take_queries()
    _cut_versions()
    _tell_versions()
    _keep_versions_on_disk()
    _share_code(state.with_name("code"))
    _remember_sessions(state.with_name("sessions.jsonl"))
    journal = _Journal(state)
    load = ministack._load_persisted_state  # noqa: SLF001
    saving: list[asyncio.Task[None]] = []

    def load_all() -> None:
        load()
        journal.replay()
        journal.attach()
        # Not before: state that is not loaded yet would be saved as empty.
        saving.append(asyncio.create_task(_save_regularly(journal)))

    ministack._load_persisted_state = load_all  # noqa: SLF001
    await serve(ministack_iam.answering(ministack.app), config, shutdown_trigger=stop.wait)
    for task in saving:
        task.cancel()


if __name__ == "__main__":
    asyncio.run(_run())
