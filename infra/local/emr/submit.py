"""What a job run asks for, turned into what a driver on this machine can execute."""

import argparse
import hashlib
import shlex
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import BotoCoreError, ClientError

# How much of a machine to use means nothing here: there is one, and the driver has it.
_SIZES = ("driver-cores", "driver-memory", "executor-cores", "executor-memory", "num-executors")


class CannotSubmit(Exception):
    """The run cannot start; the message says why."""


@dataclass(frozen=True)
class Parameters:
    """What `sparkSubmitParameters` say."""

    conf: dict[str, str]
    py_files: tuple[str, ...]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CannotSubmit(f"sparkSubmitParameters: {message}")


def parameters(text: str) -> Parameters:
    """Read `--conf key=value` and `--py-files uri,uri` as spark-submit would.

    Raises CannotSubmit for anything else but sizes of drivers and executors, which mean nothing
    on one machine.
    """
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--conf", action="append", default=[])
    parser.add_argument("--py-files", action="append", default=[])
    for size in _SIZES:
        parser.add_argument(f"--{size}")
    try:
        given = parser.parse_args(shlex.split(text))
    except ValueError as error:
        raise CannotSubmit(f"sparkSubmitParameters: {error}") from error
    files = [uri for uris in given.py_files for uri in uris.split(",") if uri]
    return Parameters(dict(map(_setting, given.conf)), tuple(files))


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise CannotSubmit(f"sparkSubmitParameters: --conf {text} is not key=value")
    return key, value


def order(spark_submit: dict[str, Any], store: Path) -> dict[str, Any]:
    """What to tell a driver: everything that lies in S3 is fetched into `store` first.

    Raises CannotSubmit.
    """
    given = parameters(spark_submit.get("sparkSubmitParameters", ""))
    return {
        "entry_point": str(_local(spark_submit["entryPoint"], store)),
        "arguments": spark_submit.get("entryPointArguments", []),
        "py_files": [str(_local(uri, store)) for uri in given.py_files],
        "conf": given.conf,
    }


def _local(uri: str, store: Path) -> Path:
    """The file on this machine; one from S3 lies in a directory named by its content."""
    place = urlsplit(uri)
    if place.scheme in ("", "file"):
        return Path(place.path).absolute()
    if place.scheme not in ("s3", "s3a"):
        raise CannotSubmit(f"{uri} is neither in S3 nor a file of this machine")
    content = _content(uri, place.netloc, place.path.lstrip("/"))
    directory = store / hashlib.sha256(content).hexdigest()[:32]
    file = directory / PurePosixPath(place.path).name
    if not file.exists():
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory, delete=False) as fresh:
            fresh.write(content)
        Path(fresh.name).replace(file)
    return file


def _content(uri: str, bucket: str, key: str) -> bytes:
    try:
        return _s3().get_object(Bucket=bucket, Key=key)["Body"].read()
    except (BotoCoreError, ClientError) as error:
        raise CannotSubmit(f"{uri} cannot be read: {error}") from error


@cache
def _s3() -> Any:
    return boto3.client("s3")
