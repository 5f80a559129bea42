"""Start, deploy and stop Lakegate on one machine; its data stays."""

import errno
import os
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from infra import checkup, package
from infra.aws import stack_plan
from infra.aws.site import connect
from infra.local import ministack, processes, settings
from infra.local.ministack import KeyFiles
from infra.local.parts import NAMES, Part, aws_environment, choose_ports, known_ports, parts
from infra.local.slack import people as slack_people
from infra.local.stack_file import Stack, read, refused, write
from infra.setup import only_one
from infra.stage import Stage
from lakegate import nessie_tokens

Tell = Callable[[str], None]
# Puts the contracts in force; its argument is the new stack's settings (environment variables).
PushContracts = Callable[[Mapping[str, str]], None]


def up(home: Path, root: Path, push_contracts: PushContracts, tell: Tell) -> Stack:
    """Start what is not running, deploy what has changed, and wait until everything answers.

    `home` has all state, `root` is the checkout. If the call fails or is interrupted, it stops what
    it started. Raises LakegateError, with the end of a part's log if the part does not start.
    """
    home, root = home.resolve(), root.resolve()
    with _alone(home):
        tokens = nessie_tokens.keep(KeyFiles(home / "keys"), datetime.now(UTC)).tokens
        all_parts = parts(home, root, choose_ports(home), tokens["reader"])
        started: list[str] = []
        try:
            with ThreadPoolExecutor() as beside:
                packaging = beside.submit(package.build_here, root, tell)
                _start(home, all_parts, started, tell)
                all_parts["ministack"].wait(home)
                stack = _deploy(home, all_parts, root, tokens, packaging.result(), tell)
            push_contracts(stack.env)
            _wait(home, all_parts, tell)
            checkup.seed(ministack.client("lambda", stack.s3), stack.functions["sweep"])
        except BaseException:
            _stop(home, started, tell)
            raise
        write(home, stack)
        return stack


def rotate(
    home: Path, root: Path, tell: Tell, life: timedelta, *, new_key: bool
) -> nessie_tokens.Keys:
    """Give the stack new tokens, with `new_key` also a new key, for which Nessie restarts.

    The next `up` does this for parts that are not running. Raises LakegateError, NO_STACK if there
    never was a stack.
    """
    home, root = home.resolve(), root.resolve()
    with _alone(home):
        known = read(home)
        tell("new key and tokens" if new_key else "new tokens")
        made = nessie_tokens.rotate(
            KeyFiles(home / "keys"), datetime.now(UTC), life, new_key=new_key
        )
        if processes.running(home, "ministack"):
            _put_secrets(known.s3, settings.secrets(made.tokens))
        part = parts(home, root, known_ports(home), made.tokens["reader"])["nessie"]
        if processes.running(home, part.name) and not processes.is_running(home, part.command):
            tell("starting nessie with the new key")
            processes.start(home, part.command)
            part.wait(home)
        write(home, replace(known, reader_token=made.tokens["reader"]))
        return made


def down(home: Path, tell: Tell) -> None:
    """Stop everything that runs for `home`, also what a crash left; the data stays."""
    with _alone(home.resolve()):
        if not _stop(home.resolve(), NAMES, tell):
            tell("nothing was running")


def health(home: Path, root: Path) -> dict[str, str]:
    """Return each part's state: "up", "down", or "not answering" for a process that does not serve.

    Raises LakegateError NO_STACK if there never was a stack.
    """
    home = home.resolve()
    all_parts = parts(home, root.resolve(), known_ports(home), read(home).reader_token)
    return {name: _health(home, part) for name, part in all_parts.items()}


def _health(home: Path, part: Part) -> str:
    if processes.running(home, part.name) is None:
        return "down"
    return "up" if part.answers() else "not answering"


def _start(home: Path, all_parts: Mapping[str, Part], started: list[str], tell: Tell) -> None:
    for name, part in all_parts.items():
        if name == "ministack" and processes.running(home, name) is None:
            processes.stop(home, name)  # the Lambdas that outlived it
            ministack.prepare(home, part.address, datetime.now(UTC))
        if processes.is_running(home, part.command):
            tell(f"{name} is running already")
            continue
        tell(f"starting {name}")
        started.append(name)
        processes.start(home, part.command)


def _stop(home: Path, names: Iterable[str], tell: Tell) -> bool:
    """Stop the last part first, so that no part calls a stopped one; return False if none ran."""
    stopped = [name for name in reversed(list(names)) if processes.stop(home, name)]
    if stopped:
        tell(f"stopped {', '.join(stopped)}")
    return bool(stopped)


def _wait(home: Path, all_parts: Mapping[str, Part], tell: Tell) -> None:
    for name, part in all_parts.items():
        if not part.answers():
            tell(f"waiting for {name}")
            part.wait(home)


def _deploy(
    home: Path,
    all_parts: Mapping[str, Part],
    root: Path,
    tokens: Mapping[str, str],
    built: package.Package,
    tell: Tell,
) -> Stack:
    tell("deploying template.yaml")
    at = {name: part.address for name, part in all_parts.items()}
    endpoint = at["ministack"]
    _put_secrets(endpoint, settings.secrets(tokens))
    template, chosen = root / "template.yaml", (settings.facts(at), settings.parameters(at))
    outputs = deploy_stage(endpoint, settings.STAGE, template, built, *chosen)
    slack_people.install(home / "slack", settings.slack_app(endpoint, outputs["ActionUrl"]))
    return described(at, outputs, tokens["reader"])


def _put_secrets(endpoint: str, every: Mapping[str, str]) -> None:
    client = ministack.client("secretsmanager", endpoint)
    for name, text in every.items():
        try:
            client.create_secret(Name=name, SecretString=text)
        except client.exceptions.ResourceExistsException:
            client.put_secret_value(SecretId=name, SecretString=text)


def described(at: Mapping[str, str], outputs: Mapping[str, str], reader_token: str) -> Stack:
    """Return the stack with these outputs; `at` maps the parts to their addresses."""
    function = ministack.client("lambda", at["ministack"]).get_function_configuration(
        FunctionName=outputs["OnJobRunFunctionName"]
    )
    return Stack(
        s3=at["ministack"],
        nessie=at["nessie"],
        iceberg=f"{at['nessie']}/iceberg",
        emr=at["emr"],
        slack=at["slack"],
        landing_bucket=outputs["LandingBucketName"],
        lake_bucket=outputs["LakeBucketName"],
        ledger_table=outputs["LedgerTableName"],
        reader_token=reader_token,
        queues=_named(outputs, "Url"),
        functions=_named(outputs, "FunctionName"),
        env={**function["Environment"]["Variables"], **aws_environment(at["ministack"], at["emr"])},
    )


def _named(outputs: Mapping[str, str], ending: str) -> dict[str, str]:
    """Return outputs by purpose: `UploadQueueUrl` becomes `upload_queue`."""
    mine = {name.removesuffix(ending): v for name, v in outputs.items() if name.endswith(ending)}
    return {re.sub("(?<=.)(?=[A-Z])", "_", name).lower(): value for name, value in mine.items()}


def _alone(home: Path) -> AbstractContextManager[None]:
    """Allow one `up` or `down` at a time for a home; the next one waits.

    Raises LakegateError HOME_REFUSED where this user can write nothing.
    """
    try:
        home.mkdir(parents=True, exist_ok=True)
        if not os.access(home, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(home))
    except OSError as error:
        raise refused(home, error) from error
    return only_one(home)


def deploy_stage(
    endpoint: str,
    stage: str,
    template: Path,
    built: package.Package,
    facts: Mapping[str, str],
    chosen: Mapping[str, str],
) -> dict[str, str]:
    """Deploy a stage's stack and return its outputs.

    `facts` are the platform's, `chosen` are parameters of the template. Raises LakegateError with
    CloudFormation's reasons.
    """
    lake = chosen.get("LakeBucketName", "")
    named = Stage(stage, ministack.ACCOUNT, ministack.REGION, lake)
    site = connect(named, partial(ministack.client, endpoint=endpoint), lambda _: None)
    site.facts.put(facts)
    return stack_plan.deploy(site, stack_plan.app(template, site, built, chosen), built)
