"""The local AWS: ministack, a process with an environment of its own and its state on disk."""

import re
import shutil
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from infra.local import processes
from lakegate.nessie_tokens import NAMES, SIGNING_KEY

REGION = "us-east-1"
ACCOUNT = "000000000000"
# ministack takes these as the account's root. The Lambdas run as the roles of the template.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
# It is local, so no answer yet means slow; a function may take as long as on AWS.
_PATIENT = Config(read_timeout=900)
_SERVER = Path(__file__).with_name("ministack_server")


def command(home: Path, python: Path, port: int) -> processes.Command:
    """Return the command for ministack on `port` with its environment's interpreter `python`."""
    own = home / "ministack"
    environment = {
        **CREDENTIALS,
        "AUTH": "true",  # enforce each Lambda's role
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "MINISTACK_HOST": "127.0.0.1",
        "MINISTACK_REGION": REGION,
        "PERSIST_STATE": "1",
        "STATE_DIR": str(own / "state"),
        "S3_PERSIST": "1",
        "S3_DATA_DIR": str(own / "s3"),
        "LAMBDA_EXECUTOR": "local",
        "DOCKER_HOST": "unix:///nowhere",
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
        "TMPDIR": str(own / "tmp"),
    }
    # -P: modules outside the server's folder are not for its environment.
    return processes.Command("ministack", (str(python), "-P", str(_SERVER)), home, environment)


def prepare(home: Path, endpoint: str, now: datetime) -> None:
    """Prepare the files on disk for a start at `endpoint`; only while ministack is down."""
    own = home / "ministack"
    shutil.rmtree(own / "tmp", ignore_errors=True)
    if (own / "s3").exists() and not (own / "state" / "cloudformation.json").exists():
        # Killed in its first deployment: a new one cannot use buckets without their state.
        (own / "s3").rename(own / f"s3-set-aside-{now:%Y%m%d-%H%M%S}")
    for directory in (own / "tmp", own / "state", own / "s3", own / "code"):
        directory.mkdir(parents=True, exist_ok=True)
    _delete_old_code(own / "code")
    for file in (own / "state").glob("*.json"):
        _move(file, endpoint)


def answers(endpoint: str) -> bool:
    """Return whether ministack serves requests."""
    return processes.answers(f"{endpoint}/_ministack/health")


def client(service: str, endpoint: str) -> Any:
    """Return boto3's client of a service at the local endpoint, never in the cloud."""
    processes.call_directly()
    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        config=_PATIENT,
    )


def _delete_old_code(codes: Path) -> None:
    """Keep the newest version of the functions' code, if it was unpacked to its end."""
    shutil.rmtree(codes / "new", ignore_errors=True)
    for old in sorted(codes.iterdir(), key=lambda code: code.stat().st_mtime)[:-1]:
        shutil.rmtree(old)


def _move(file: Path, endpoint: str) -> None:
    """Put the endpoint into a state file: queues are stored under their address with the port."""
    text = file.read_text()
    moved = re.sub(rf"http://127\.0\.0\.1:\d+/{ACCOUNT}", f"{endpoint}/{ACCOUNT}", text)
    if moved != text:
        file.write_text(moved)


class KeyFiles:
    """A keyring in a directory.

    Its files, the signing key and the tokens, can be opened by their owner alone.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self) -> Mapping[str, str]:
        """Return the stored texts by name."""
        files = {name: self._file(name) for name in NAMES}
        return {name: file.read_text() for name, file in files.items() if file.exists()}

    def write(self, name: str, text: str) -> None:
        """Store a text."""
        self._directory.mkdir(parents=True, exist_ok=True)
        file = self._file(name)
        beside = file.with_suffix(".new")
        beside.touch(mode=0o600)
        beside.write_text(text)
        beside.replace(file)

    def _file(self, name: str) -> Path:
        return self._directory / ("nessie.pem" if name == SIGNING_KEY else f"{name}.token")
