"""Translate a job run's request into a local driver's order."""

import argparse
import hashlib
import shlex
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn
from urllib.parse import SplitResult, urlsplit

import boto3
from botocore.exceptions import BotoCoreError, ClientError

_OF_THE_DRIVER = (
    *("spark.driver.", "spark.executor.", "spark.executorEnv.", "spark.dynamicAllocation."),
    *("spark.jars", "spark.archives", "spark.emr-serverless."),
    *("spark.sql.extensions", "spark.sql.catalogImplementation"),
)
# The defaults of EMR Serverless for Spark (User Guide, "Spark job properties").
_CORES, _EXECUTORS, _MEMORY = 4, 3, "14g"
_LEAST_BESIDE = 384 << 20  # bytes


class CannotSubmit(Exception):
    """A run that cannot start, with the reason."""


@dataclass(frozen=True)
class Parameters:
    """The parsed `sparkSubmitParameters`; `conf` is without settings for a driver of its own.

    `needed` are jars and archives, which only have to exist: the driver has its own. `variables`
    are those of the driver's environment, `of_executors` those of its executors. Python may take
    `beside` bytes in the driver, beside the JVM.
    """

    conf: dict[str, str]
    variables: dict[str, str]
    of_executors: dict[str, str]
    py_files: tuple[str, ...]
    needed: tuple[str, ...]
    workers: "Workers"
    beside: int


@dataclass(frozen=True)
class Workers:
    """The vCPUs of a run's driver and of each executor, and the executors that it begins with."""

    driver: int
    executor: int
    executors: int


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CannotSubmit(f"sparkSubmitParameters: {message}")


def parameters(text: str) -> Parameters:
    """Read `--conf key=value` and `--py-files uri,uri` as spark-submit would.

    Raises CannotSubmit for any other option.
    """
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--conf", action="append", default=[])
    parser.add_argument("--py-files", action="append", default=[])
    try:
        given = parser.parse_args(shlex.split(text))
        conf = dict(map(_setting, given.conf))
        workers = _workers(conf)
    except ValueError as error:
        raise CannotSubmit(f"sparkSubmitParameters: {error}") from error
    needed = _listed(conf.get(f"spark.{it}", "") for it in ("jars", "archives"))
    kept = {name: value for name, value in conf.items() if not name.startswith(_OF_THE_DRIVER)}
    variables = _named(conf, "spark.emr-serverless.driverEnv.")
    of_executors = _named(conf, "spark.executorEnv.")
    beside = _bytes_beside_jvm(conf)
    py_files = _listed(given.py_files)
    return Parameters(kept, variables, of_executors, py_files, needed, workers, beside)


def _bytes_beside_jvm(conf: Mapping[str, str]) -> int:
    """Return the driver's bytes beside its JVM: by default a tenth of that, or 384 MiB if more."""
    memory = _bytes(conf.get("spark.driver.memory", _MEMORY))
    given = conf.get("spark.driver.memoryOverhead")
    return _bytes(given) if given else max(memory // 10, _LEAST_BESIDE)


def _bytes(text: str) -> int:
    """Return a size as Spark writes it. Raises ValueError."""
    return int(text[:-1]) * 1024 ** ("kmgt".index(text[-1].lower()) + 1)


def _named(conf: Mapping[str, str], begin: str) -> dict[str, str]:
    """Return the variables that are set under this beginning.

    Not the path: the libraries of a run are those of this machine's environment.
    """
    variables = {name.removeprefix(begin): v for name, v in conf.items() if name.startswith(begin)}
    return {name: value for name, value in variables.items() if name != "PYTHONPATH"}


DEFAULT_WORKERS = Workers(_CORES, _CORES, _EXECUTORS)


def _workers(conf: Mapping[str, str]) -> Workers:
    first = max(
        int(conf.get("spark.executor.instances", _EXECUTORS)),
        int(conf.get("spark.dynamicAllocation.initialExecutors", _EXECUTORS)),
    )
    return Workers(
        driver=int(conf.get("spark.driver.cores", _CORES)),
        executor=int(conf.get("spark.executor.cores", _CORES)),
        executors=min(first, int(conf.get("spark.dynamicAllocation.maxExecutors", first))),
    )


def _listed(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(uri for uris in texts for uri in uris.split(",") if uri)


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise CannotSubmit(f"sparkSubmitParameters: --conf {text} is not key=value")
    return key, value


def order(
    spark_submit: dict[str, Any], store: Path, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return the driver's order after downloading all files in S3 into `store`.

    `environment` has the run's credentials, which its executors get, too. Raises CannotSubmit, also
    for a missing jar or archive.
    """
    given = parameters(spark_submit.get("sparkSubmitParameters", ""))
    s3 = _s3(environment)
    for uri in given.needed:
        _require(uri.partition("#")[0], s3)
    return {
        "entry_point": str(_local(spark_submit["entryPoint"], store, s3)),
        "arguments": spark_submit.get("entryPointArguments", []),
        "py_files": [str(_local(uri, store, s3)) for uri in given.py_files],
        "conf": given.conf,
        "beside": given.beside,
        "environment": {**given.variables, **environment},
        "executor_environment": {**given.of_executors, **environment},
    }


def _require(uri: str, s3: Any) -> None:
    """Raise CannotSubmit unless the file exists and may be read."""
    place = urlsplit(uri)
    if place.scheme in ("s3", "s3a"):
        _asked(uri, s3.head_object, place)
    elif not Path(place.path).exists():
        raise CannotSubmit(f"java.nio.file.NoSuchFileException: {uri}")


def _local(uri: str, store: Path, s3: Any) -> Path:
    """Return the local file; one from S3 lies in a directory named by its content."""
    place = urlsplit(uri)
    if place.scheme in ("", "file"):
        return Path(place.path).absolute()
    if place.scheme not in ("s3", "s3a"):
        raise CannotSubmit(f"{uri} is neither in S3 nor a file of this machine")
    content = _asked(uri, s3.get_object, place)["Body"].read()
    directory = store / hashlib.sha256(content).hexdigest()[:32]
    file = directory / PurePosixPath(place.path).name
    if not file.exists():
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory, delete=False) as fresh:
            fresh.write(content)
        Path(fresh.name).replace(file)
    return file


def _asked(uri: str, ask: Callable[..., Any], place: SplitResult) -> Any:
    try:
        return ask(Bucket=place.netloc, Key=place.path.lstrip("/"))
    except (BotoCoreError, ClientError) as error:
        raise CannotSubmit(f"{uri} cannot be read: {error}") from error


def _s3(environment: Mapping[str, str]) -> Any:
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    return boto3.client("s3", **{name.lower(): environment.get(name) for name in names})
