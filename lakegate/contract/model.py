"""A contract: which landed files belong to a table, and the requirements on them."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from lakegate.contract.checks import OF_VALUES, Check
from lakegate.contract.columns import Column
from lakegate.contract.reading.layout import TableLayout, read_layout
from lakegate.contract.reading.other_columns import (
    FormerColumns,
    Provenance,
    read_former,
    read_provenance,
)
from lakegate.contract.reading.properties import Property, read_properties
from lakegate.contract.reading.quality.rules import read_checks
from lakegate.contract.reading.service_levels import Expected, read_expected
from lakegate.contract.reading.settings import (
    FLAT_FORMATS,
    SCHEMA_FORMATS,
    Quarantine,
    batch_prefixes,
    chosen,
    landing_prefix,
    read_options,
    read_quarantine,
    read_settings,
)
from lakegate.contract.reading.sql import read_transform
from lakegate.contract.reading.write_mode import WriteMode, read_write_mode
from lakegate.contract.text.fields import Field
from lakegate.contract.text.problems import ContractInvalid, Problem
from lakegate.contract.text.yaml import Node, load
from lakegate.limits import DEFAULTS, Limits

__all__ = ["API_VERSIONS", "Contract", "ContractInvalid", "Problem", "parse", "read"]

API_VERSIONS = ("v3.0.0", "v3.0.1", "v3.0.2", "v3.1.0", "v3.2.0")
# The tag of the job run that names the table takes 256 characters.
_TABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,126}\.[A-Za-z][A-Za-z0-9_]{0,126}", re.ASCII)
_USUAL_NAMESPACE = "default"
_OWN_NAMESPACE = "ops"  # of history's tables
# The keys of the standard, by place. `…_KNOWN` are honoured; `…_IGNORED` describe, and change no
# verdict. Any other key is not of the standard.
# fmt: off
_ROOT_KNOWN = (
    "id", "version", "kind", "apiVersion", "schema", "support", "team", "customProperties",
    "slaProperties",
)
_ROOT_IGNORED = (
    "name", "tenant", "tags", "status", "servers", "dataProduct", "description", "domain",
    "context", "price", "roles", "slaDefaultElement", "contractCreatedTs",
    "authoritativeDefinitions",
)
_SUPPORT_KNOWN = ("channel", "tool")
_SUPPORT_IGNORED = ("id", "url", "description", "scope", "invitationUrl", "customProperties")

_OBJECT_KNOWN = (
    "name", "physicalName", "logicalType", "properties", "quality", "customProperties",
    "relationships",
)
_OBJECT_IGNORED = (
    "id", "physicalType", "description", "businessName", "deprecated", "synonyms", "tags",
    "authoritativeDefinitions", "dataGranularityDescription", "context",
)
# fmt: on


@dataclass(frozen=True)
class Contract:
    """A data owner's contract, parsed.

    `table` is `<namespace>.<table>`. `landing_prefix` is the prefix of the keys that belong to it.
    `format` is parquet, csv, tsv, json, avro or orc; `options` describe files of a text format,
    each as text and most by the names of Spark's reader. `owner` and `channel` (Slack) are "" by
    default. `sha256` is the digest of the contract's text. Without `allow_samples`, reports and
    alerts show no row of the data. `on_duplicate` decides on a file with the bytes of an earlier
    one: "publish", or "hold" for a person to decide; `on_new_version` decides if new bytes under a
    key "add" their rows or "replace" those of the key's earlier versions. `isolation` says if files
    may take part in "shared" runs, or have runs of their "own". `write` says if
    Arrow may write a file's rows where it can ("auto"), or always "spark". `compaction`
    of small data files is "scheduled", or is "never" done. `batches` are the prefixes of the
    manifests that may bring the table's files. `nested` are the columns within columns.
    `quarantine` limits the rows that may be quarantined. If a file has other columns than
    `columns`, `extra_columns` and `missing_columns` say that it must "fail", or that an extra one
    is left out ("drop") or added to the table ("add") and a missing one is "null".
    `expected` says how often files are expected, None if it does not matter.
    `transform` is a SELECT whose result is audited in the file's place, "" for the file as it is.
    `layout` says how the table is stored, `provenance` which columns it has besides `columns`: they
    say where each row comes from. `former` are columns that its table may still have. `write_mode`
    says what a file's rows do with those that the table has.
    """

    id: str
    version: str
    table: str
    landing_prefix: str
    format: str
    columns: tuple[Column, ...]
    checks: tuple[Check, ...]
    sha256: str
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    owner: str = ""
    channel: str = ""
    allow_samples: bool = True
    on_duplicate: str = "publish"
    on_new_version: str = "add"
    isolation: str = "shared"
    write: str = "auto"
    compaction: str = "scheduled"
    batches: tuple[str, ...] = ()
    nested: tuple[Column, ...] = ()
    quarantine: Quarantine | None = None
    extra_columns: str = "fail"
    missing_columns: str = "fail"
    expected: Expected | None = None
    transform: str = ""
    layout: TableLayout = field(default_factory=TableLayout)
    provenance: Provenance = field(default_factory=Provenance)
    former: FormerColumns = field(default_factory=FormerColumns)
    write_mode: WriteMode = field(default_factory=WriteMode)

    @cached_property
    def requirements_digest(self) -> str:
        """Return a digest of the requirements on rows; owner, channel and the like do not count."""
        file = (self.format, sorted(self.options.items()), self.transform)
        policy = (self.extra_columns, self.missing_columns, self.quarantine)
        added = [each for each in (self.provenance, self.write_mode) if each]
        asked = (self.table, file, self.columns, self.checks, policy, *added)
        return hashlib.sha256(repr(asked).encode()).hexdigest()[:32]

    @property
    def table_columns(self) -> tuple[Column, ...]:
        """Return all columns of the table: the file's, and those of provenance."""
        return (*self.columns, *self.provenance.columns)

    @property
    def checks_whole_table(self) -> bool:
        """Return if the verdict on a file also depends on the table's existing rows."""
        return any(check.checks_whole_table for check in self.checks)

    @property
    def reads_others(self) -> bool:
        """Return if one of its checks reads, or may read, other tables."""
        return any(check.reads_others(self.table) for check in self.checks)

    @property
    def of_table(self) -> "Contract":
        """Return the contract as all rows of its table must keep it."""
        return replace(self, checks=tuple(map(self.write_mode.of_table, self.checks)))

    def conceals(self, check: Check) -> bool:
        """Return if a check's measure is made of confidential values."""
        of_values = check.basis.metric in OF_VALUES
        return of_values and any(self.column(name).sensitive for name in check.columns)

    @property
    def concealed(self) -> frozenset[str]:
        """Return the table's confidential columns, including those with a confidential part."""
        return frozenset(c.top for c in (*self.columns, *self.nested) if c.sensitive)

    @property
    def quotes_files(self) -> bool:
        """Return if messages may repeat text of a file, such as the names of its columns.

        Columns that only files added do not count here: they are hidden by default, not on request.
        """
        declared = (c for c in (*self.columns, *self.nested) if c.is_declared)
        return self.allow_samples and not any(column.sensitive for column in declared)

    @property
    def names_columns(self) -> bool:
        """Return if messages may name a file's columns that are not the contract's.

        Formats with a schema have names there. In a text format, a column's name may be a value:
        the cells of the first row if the header is missing, or an object's keys.
        """
        return self.quotes_files or self.format in SCHEMA_FORMATS

    @property
    def revealed(self) -> "Contract":
        """Return the contract for whoever has the file at hand: nothing is confidential."""
        columns, nested = (
            tuple(replace(column, sensitive=False) for column in part)
            for part in (self.columns, self.nested)
        )
        return replace(self, columns=columns, nested=nested, allow_samples=True)

    def column(self, name: str) -> Column:
        """Return the column of that name, nested ones included. Raises KeyError without one."""
        return {column.name: column for column in (*self.nested, *self.columns)}[name]


def parse(text: str, source: str, limits: Limits = DEFAULTS) -> Contract:
    """Return the contract in a YAML text of the Open Data Contract Standard named `source`.

    Raises ContractInvalid, with all problems, when anything in it is wrong, or would have to be
    ignored although the verdict on a file depends on it.
    """
    problems: list[Problem] = []
    contract = read(load(text, source, problems, limits), text, problems)
    if problems:
        raise ContractInvalid(source, problems)
    return contract


def read(tree: Node, text: str, problems: list[Problem]) -> Contract:
    """Return the contract in the tree of a text; with more `problems` than before it is none."""
    return _contract(Field(tree, "", problems), hashlib.sha256(text.encode()).hexdigest())


def _contract(root: Field, sha256: str) -> Contract:
    root.limit_keys(_ROOT_KNOWN, _ROOT_IGNORED)
    root.choice("kind", ("DataContract",))
    root.choice("apiVersion", API_VERSIONS)
    schema = _schema_object(root)
    table = _table_name(schema)
    settings = read_settings(root, schema)
    format_ = chosen(settings, "format")
    properties = read_properties(schema.at("properties"))
    transform = read_transform(settings, format_)
    provenance = read_provenance(settings, properties, transformed=bool(transform))
    layout = read_layout(schema, settings, properties, provenance.columns)
    write_mode = read_write_mode(settings, properties, layout.partitions or ())
    contract = Contract(
        id=root.required_text("id"),
        version=root.required_text("version"),
        table=table,
        landing_prefix=landing_prefix(settings, table),
        format=format_,
        columns=tuple(entry.column for entry in properties),
        checks=read_checks(
            schema, table, properties, format_=format_, latest_by=write_mode.latest_by
        ),
        sha256=sha256,
        options=read_options(settings, format_),
        owner=_owner(root.at("team")),
        channel=_channel(root.at("support")),
        allow_samples=settings.flag("allowSamples", default=True),
        on_duplicate=chosen(settings, "onDuplicate"),
        on_new_version=chosen(settings, "onNewVersion"),
        isolation=chosen(settings, "isolation"),
        write=chosen(settings, "write"),
        compaction=chosen(settings, "compaction"),
        batches=batch_prefixes(settings),
        nested=tuple(
            inner.column for p in properties for part in p.within for inner in part.walk()
        ),
        quarantine=read_quarantine(settings),
        extra_columns=chosen(settings, "extraColumns"),
        missing_columns=chosen(settings, "missingColumns"),
        expected=read_expected(root.at("slaProperties"), _own_names(schema, table, properties)),
        transform=transform,
        layout=layout,
        provenance=provenance,
        former=read_former(settings, properties, [c.name for c in provenance.columns]),
        write_mode=write_mode,
    )
    _refuse_contradictions(settings, contract)
    return contract


def _refuse_contradictions(settings: Field, contract: Contract) -> None:
    """Refuse settings that exclude each other."""
    _refuse_open_quarantine(settings, contract)
    if contract.nested and contract.format in FLAT_FORMATS:
        settings.refuse(f"is {contract.format}, whose cells hold no nested columns", "format")
    quotes = [c.name for c in (*contract.columns, *contract.nested) if "`" in c.name]
    if quotes and contract.format == "orc" and not contract.transform:
        reason = f"is orc, whose library cuts the name {quotes[0]!r} at its backtick: rename it"
        settings.refuse(reason, "format")
    if contract.checks_whole_table and contract.on_new_version != "add":
        reason = "cannot be replace yet where a check looks at the whole table: the rows to be"
        settings.refuse(f"{reason} replaced would count", "onNewVersion")
    _refuse_with_write_mode(settings, contract)


def _refuse_with_write_mode(settings: Field, contract: Contract) -> None:
    """Refuse what supposes that a file only adds rows, if it may also remove some."""
    mode = contract.write_mode
    if not mode:
        return
    if contract.checks_whole_table:
        reason = "cannot be checked yet on the whole table (scope): the rows to be replaced would"
        settings.refuse(f"a table with {mode.name} {reason} count", "writeMode")
    if contract.on_new_version != "add":
        reason = f"has no meaning with {mode.name}, which itself replaces rows"
        settings.refuse(reason, "onNewVersion")


def _refuse_open_quarantine(settings: Field, contract: Contract) -> None:
    if not contract.quarantine and any(check.quarantine for check in contract.checks):
        settings.refuse("rows are to go into quarantine: say how many may", "quarantine")


def _schema_object(root: Field) -> Field:
    objects = list(root.at("schema").items())
    if len(objects) > 1:
        root.refuse("has several tables: lakegate contract push divides them", "schema")
    if not objects:
        root.refuse("has no table", "schema")
        return Field(Node(root.node.line, None), "schema", [])  # whose problems would be this one
    objects[0].limit_keys(_OBJECT_KNOWN, _OBJECT_IGNORED)
    objects[0].choice("logicalType", ("object",), default="object")
    return objects[0]


def _table_name(schema: Field) -> str:
    is_elsewhere = schema.text("physicalType").lower() == "topic"  # whose name is no table's
    key = "physicalName" if schema.has("physicalName") and not is_elsewhere else "name"
    name = schema.required_text(key)
    name = qualified(name)
    if name and (problem := table_problem(name)):
        schema.refuse(problem, key)
    return name


def table_problem(name: str) -> str:
    """Return why a table cannot have this name, "" if it can."""
    if name.lower().startswith(f"{_OWN_NAMESPACE}."):
        return f"the namespace {_OWN_NAMESPACE} is for Lakegate's own tables"
    if _TABLE.fullmatch(name):
        return ""
    return (
        f"{name!r} must name a namespace and a table, as in nyc.flights: each begins with a letter,"
        " and letters, digits and _ follow, up to 127 characters"
    )


def _own_names(schema: Field, table: str, properties: Sequence[Property]) -> set[str]:
    """Return what a service level can call the table, or one of its columns."""
    columns = {name for each in properties for name in (each.name, each.column.name)}
    return {schema.text("name"), table, table.rpartition(".")[2], *columns} - {""}


def qualified(name: str) -> str:
    """Return a table's name with a namespace: `default`, as in Spark, if it has none."""
    return f"{_USUAL_NAMESPACE}.{name}" if name and "." not in name else name


def _owner(team: Field) -> str:
    """Return the team's name, or else its owner, or else its first member."""
    if not isinstance(team.node.value, tuple) and team.text("name"):
        return team.text("name")
    listed = team if isinstance(team.node.value, tuple) else team.at("members")
    members = list(listed.items())
    members.sort(key=lambda member: "owner" not in member.text("role").lower())
    return members[0].text("name") or members[0].text("username") if members else ""


def _channel(support: Field) -> str:
    """Return the first Slack channel, recognized by its tool or by the # before its name."""
    for item in support.items():
        item.limit_keys(_SUPPORT_KNOWN, _SUPPORT_IGNORED)
        channel, tool = item.text("channel"), item.text("tool").lower()
        if tool == "slack" or (not tool and channel.startswith("#")):
            return channel
    return ""
