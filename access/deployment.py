"""Choose and open the deployment to work on: the local stack, or one on AWS."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from functions.settings import Settings
from infra.local import stack_file
from infra.local.stack_file import Stack
from lakegate.errors import LakegateError
from lakegate.landing import ID_PART

if TYPE_CHECKING:
    from access.tables import Reader
    from functions.adapters.all import Adapters
    from functions.adapters.ledger.ledger import Ledger
    from functions.model.ingestion import Ingestion
    from functions.operations.decisions.failed import Outcome


# The libraries of AWS, Nessie and Iceberg take seconds to import. Every command imports this
# module, also for its help, so they are imported only where needed.

ROOT = Path(__file__).resolve().parents[1]
# Variables that would direct a client of the local stack elsewhere.
_ELSEWHERE = ("aws_", "lakegate_", "http_proxy", "https_proxy", "all_proxy")


@dataclass(frozen=True)
class Deployment:
    """A running deployment of Lakegate.

    `addresses` maps the systems that clients may use to their URLs. `reader_token` reads the
    catalog; it is "" if clients have tokens of their own. `local` means this machine.
    `expire_function` discards for people; it is "" where they do it by their own rights.
    """

    settings: Settings
    addresses: Mapping[str, str]
    reader_token: str = field(repr=False)
    local: bool
    expire_function: str = ""

    def adapters(self) -> "Adapters":
        """Return the adapters, which call Nessie at its address for clients."""
        from functions.wiring import connect

        return connect(self.settings, self.addresses["nessie"])

    def discard(self, ingestion: "Ingestion", by: str) -> "Outcome":
        """Discard a failed ingestion, by the stage's function if there is one.

        Raises LakegateError as `failed.discard` does, and if the function
        cannot be asked.
        """
        from access import discarding
        from functions.operations.decisions import failed

        adapters, function = self.adapters(), self.expire_function
        if not function:
            return failed.discard(adapters, ingestion, by=by)
        client = discarding.client_of(self.settings.clean_up_role_arn)
        return discarding.discard(client, function, adapters.ledger, ingestion.id, by)

    def catalog_token(self) -> str:
        """Return a token that reads the catalog: the reader's, or else the functions' own."""
        import boto3

        from functions.adapters.secrets import secret

        name = self.settings.nessie_token_secret
        return self.reader_token or secret(boto3.client("secretsmanager"), name)

    def reader(self, reference: str) -> "Reader":
        """Return a reader of the tables at a branch, or at `branch@hash`."""
        from access.tables import Reader

        return Reader(self.addresses["iceberg"], self.catalog_token(), reference)


def is_checkout() -> bool:
    """Return whether a checkout runs, or a copy of one, and no installed package."""
    return (ROOT / "template.yaml").is_file()


def checkout() -> Path:
    """Return the checkout that runs. Raises LakegateError NO_CHECKOUT for an installed package."""
    if not is_checkout():
        message = (
            "only a checkout of Lakegate can do this: here its package is installed\n"
            "Work in a clone, after `make setup`."
        )
        raise LakegateError("NO_CHECKOUT", message)
    return ROOT


def home() -> Path:
    """Return the local stack's folder: LAKEGATE_HOME, or `.lakegate` in the checkout.

    For an installed package it is `.lakegate` in the user's home, or where its copy of the project
    is.
    """
    where = ROOT if is_checkout() else Path.home()
    own = ROOT.parent if (ROOT / stack_file.COPIED).is_file() else where / ".lakegate"
    return Path(os.environ.get("LAKEGATE_HOME") or own).resolve()


@dataclass(frozen=True)
class Choice:
    """The chosen deployment: a `stage` on AWS, the `local` stack, or that of the environment.

    `name` is for display: `the local stack`, `stage dev in eu-central-1`. Choose once: opening a
    deployment changes this process's environment, and a second choice would differ.
    """

    name: str
    stage: str = ""
    local: bool = False

    @classmethod
    def of(cls, stage: str | None) -> "Choice":
        """Choose the named stage, or else the deployment of the environment, or the local stack."""
        ledger = os.environ.get("LAKEGATE_LEDGER_TABLE")
        if not stage and not ledger:
            return cls("the local stack", local=True)
        called = stage or os.environ.get("LAKEGATE_STAGE")
        region = _region()
        named = f"stage {called}" if called else f"ledger {ledger}"
        return cls(f"{named} in {region}" if region else named, stage or "")

    def open(self, *, running: bool = True) -> Deployment:
        """Return the deployment, and set this process's environment to the one it needs.

        The local stack must run unless `running` is False. Raises LakegateError if it is missing.
        """
        if self.stage:
            os.environ.update(_deployed(f"lakegate-{self.stage}"))
        elif self.local:
            from infra.local import processes  # psutil takes its time, which help does not need

            local = stack_file.read(home())
            if running and processes.running(home(), "ministack") is None:
                raise LakegateError("STACK_DOWN", "the local stack is down: run `lakegate up`")
            return of_stack(local)
        return _of_environment()


def find(stage: str | None = None, *, running: bool = True) -> Deployment:
    """Choose and open the deployment. Raises LakegateError if there is none."""
    return Choice.of(stage).open(running=running)


def of_stack(local: Stack) -> Deployment:
    """Return the local stack, independent of the account and proxy in the user's environment."""
    enter(local.env)
    addresses = {
        "s3": local.s3,
        "nessie": local.nessie,
        "iceberg": local.iceberg,
        "emr": local.emr,
        "slack": local.slack,
    }
    return Deployment(Settings.of(os.environ), addresses, local.reader_token, local=True)


def enter(env: Mapping[str, str]) -> None:
    """Give this process the environment of a local stack, without settings of another account."""
    local = {"LAKEGATE_HOME": str(home()), **env}
    os.environ.update(local)  # first: in no moment does it lead another thread elsewhere
    for name in os.environ.keys() - local.keys():
        if name.lower().startswith(_ELSEWHERE):
            del os.environ[name]


def _region() -> str:
    """Return the region of boto3's clients, or else that of a Lambda; "" if there is none."""
    import boto3

    return boto3.session.Session().region_name or os.environ.get("AWS_REGION", "")


def _of_environment() -> Deployment:
    settings = Settings.of(os.environ)
    nessie = nessie_address(settings.nessie_uri, os.environ.get("LAKEGATE_NESSIE_FUNCTION", ""))
    addresses = {
        "s3": os.environ.get("AWS_ENDPOINT_URL") or f"https://s3.{_region()}.amazonaws.com",
        "nessie": nessie,
        "iceberg": f"{nessie}/iceberg",
    }
    token = os.environ.get("LAKEGATE_READER_TOKEN", "")
    expire = os.environ.get("LAKEGATE_EXPIRE_FUNCTION", "")
    return Deployment(settings, addresses, token, local=False, expire_function=expire)


def nessie_address(uri: str, function: str) -> str:
    """Return where this process calls the Nessie that has the address `uri` in its network.

    It is a server of this process that calls the `function`, or `uri` itself without a function
    and where LAKEGATE_NESSIE_DIRECT is set.
    """
    if not function or os.environ.get("LAKEGATE_NESSIE_DIRECT"):
        return uri
    from access import forwarding

    return forwarding.address(function, os.environ.get("AWS_ENDPOINT_URL", ""))


def _deployed(name: str) -> dict[str, str]:
    """Return the settings of a deployed CloudFormation stack, as one of its functions has them."""
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        found = boto3.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
        outputs: dict[str, Any] = {o["OutputKey"]: o["OutputValue"] for o in found["Outputs"]}
        function = boto3.client("lambda").get_function_configuration(
            FunctionName=outputs["OnJobRunFunctionName"]
        )
    except (ClientError, BotoCoreError) as error:
        message = (
            f"cannot read the CloudFormation stack {name}: {error}\n"
            "Are the stage's name, AWS's region (AWS_DEFAULT_REGION) and your credentials right?"
        )
        raise LakegateError("NO_DEPLOYMENT", message) from error
    settings = dict(function["Environment"]["Variables"])
    settings["LAKEGATE_NESSIE_FUNCTION"] = outputs.get("OnNessieRequestFunctionName", "")
    settings["LAKEGATE_EXPIRE_FUNCTION"] = outputs.get("ExpireFunctionName", "")
    return {k: v for k, v in settings.items() if k.startswith(("LAKEGATE_", "AWS_ENDPOINT_"))}


# Find an ingestion by its id, or by the first characters of it.

_ID_LENGTH = 32


def identified(ledger: "Ledger", beginning: str) -> "Ingestion":
    """Return the one ingestion whose id starts with `beginning`.

    Raises LakegateError UNKNOWN_INGESTION if there is none, AMBIGUOUS_ID if there are several.
    """
    wanted = beginning.strip().lower()
    if len(wanted) == _ID_LENGTH:
        return ledger.get(wanted)
    found = [each for each in ledger.all() if wanted and each.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if not found:
        message = f"no ingestion id starts with {beginning!r}\nList ids with `lakegate runs`."
        raise LakegateError("UNKNOWN_INGESTION", message)
    ids = ", ".join(sorted(each.id[:ID_PART] for each in found)[:5])
    message = f"{len(found)} ingestion ids start with {beginning!r}: {ids} …\nGive more characters."
    raise LakegateError("AMBIGUOUS_ID", message)
