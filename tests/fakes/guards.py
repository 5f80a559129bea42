"""The guards that keep the promises, each with what breaks without it and how to take it out."""

from dataclasses import dataclass

from tests.fakes.sabotage import Cut


@dataclass(frozen=True)
class Guard:
    """Without the guard, that is with its `cuts`, the machine must find the `breach`.

    That is a regular expression on the machine's message. `opening` names what the machine's
    stories then begin with, where only few would come by the guard (tests/fakes/stories.py).
    """

    name: str
    breach: str
    cuts: tuple[Cut, ...]
    opening: str = ""


# Looks in main's log that stand behind other guards (tests/unit/pipeline/test_publishing_once.py).
_LOOK_AFTER_THE_CUT = Cut(
    "functions.pipeline.intake",
    "    if ingestion.base_hash:",
    "    if False:",
)
_LOOK_BEFORE_ENTERING = Cut(
    "functions.pipeline.publish",
    "    commits.require_unpublished(world.catalog.log(), refused.members)\n",
    "",
)

GUARDS = (
    Guard(
        "a landed object begins once",
        "never at rest",
        (
            Cut(
                "tests.fakes.ledger",
                "if self._revisions[ingestion.id]:",
                "if False:",
            ),
        ),
    ),
    Guard(
        "a save fails where another process was faster",
        "doubled|cannot read|never at rest|recorded",
        (
            Cut(
                "tests.fakes.ledger",
                "revisions[-1].revision != ingestion.revision",
                "False",
            ),
        ),
    ),
    Guard(
        "one client token starts one job run",
        "run more than once",
        (
            Cut(
                "tests.fakes.jobs",
                "if known.run.name == name:",
                "if False:",
            ),
        ),
    ),
    Guard(
        "a branch's name tells its ingestion",
        "doubled|unaudited|evidence is gone",
        (
            Cut(
                "lakegate.landing",
                """'file'}-{ingestion[:ID_PART]}""",
                """'file'}""",
            ),
        ),
    ),
    Guard(
        "a branch's name can be derived again",
        "left behind|must not end",
        (
            Cut(
                "functions.pipeline.intake",
                "ingestion.landed.key, ingestion.id, ingestion.attempt)",
                "ingestion.landed.key, ingestion.id, ingestion.attempt) + world.token()",
            ),
        ),
        opening="A_LOST_ENTRY",
    ),
    Guard(
        "what was known already is not submitted again",
        "must not end|never at rest",
        (
            Cut(
                "functions.pipeline.intake",
                "if ingestion.state in (State.LANDED, State.BRANCHED) and",
                "if not ingestion.ended and",
            ),
        ),
    ),
    Guard(
        "no file without bytes is taken",
        "EMPTY must not end published",
        (
            Cut(
                "functions.pipeline.intake",
                "    if size == 0:\n",
                "    if False:\n",
            ),
        ),
    ),
    Guard(
        "a marker is no data",
        "MARKER must not end published",
        (
            Cut(
                "functions.pipeline.intake",
                "    if rule:",
                "    if False:",
            ),
        ),
    ),
    Guard(
        "an ended ingestion stays as it ended",
        "doubled|must not end",
        (
            Cut(
                "functions.pipeline.complete",
                "if ingestion.ended or ingestion.state is State.AUDITED:\n            return",
                "if ingestion.state is State.AUDITED:\n            return",
            ),
        ),
    ),
    Guard(
        "the end of an earlier attempt is no verdict on this one",
        "must not end|evidence is gone|recorded",
        (
            Cut(
                "functions.pipeline.complete",
                "attempt == ingestion.attempt and run.state.terminal",
                "run.state.terminal",
            ),
        ),
    ),
    Guard(
        "a run that goes on is not judged",
        "must not end|recorded",
        (
            Cut(
                "functions.pipeline.complete",
                "if not run.state.terminal:",
                "if False:",
            ),
        ),
    ),
    Guard(
        "the report must belong to the attempt",
        "FOREIGN must not end published",
        (
            Cut(
                "functions.pipeline.complete",
                "not _belongs(report, ingestion)",
                "False",
            ),
        ),
    ),
    Guard(
        "the exit code gates",
        "CONTRADICTED must not end published",
        (
            Cut(
                "functions.pipeline.complete",
                "if run.state is not RunState.SUCCESS:",
                "if False:",
            ),
        ),
    ),
    Guard(
        "the report decides",
        "CARELESS must not end",
        (
            Cut(
                "functions.pipeline.complete",
                "if report.verdict is Verdict.PASSED:",
                "if run.state is RunState.SUCCESS:",
            ),
        ),
    ),
    Guard(
        "no check has failed",
        "HOLLOW must not end published",
        (
            Cut(
                "functions.pipeline.complete",
                "if any(_is_unfounded(single) for single in report.singles):",
                "if False:",
            ),
        ),
    ),
    Guard(
        "something was written",
        "IDLE must not end",
        (
            Cut(
                "functions.pipeline.complete",
                "if _is_unwritten(report, ingestion):",
                "if False:",
            ),
        ),
    ),
    Guard(
        "what is merged is what was audited",
        "unaudited",
        (
            Cut(
                "functions.pipeline.publish",
                "            unit.intent.hash,\n            members[0].base_hash,",
                "            world.catalog.head(unit.intent.branch),\n"
                "            members[0].base_hash,",
            ),
        ),
    ),
    Guard(
        "the job starts where its branch was cut",
        "GOOD must not end errored JOB_FAILED",
        (
            Cut(
                "tests.fakes.job",
                "        catalog.reset(spec.branch, spec.base_hash)\n",
                "",
            ),
        ),
        opening="A_MEDDLER",
    ),
    Guard(
        "the job sees who else writes on its branch",
        "unaudited",
        (
            Cut(
                "tests.fakes.job",
                "        catalog.reset(spec.branch, spec.base_hash)\n",
                "",
            ),
            Cut(
                "tests.fakes.job",
                "    if catalog.head(spec.branch) != spec.base_hash:\n        raise",
                "    if False:\n        raise",
            ),
            Cut("tests.fakes.catalog", "        if before not in (head", "        if not (head"),
            # Behind it stands another guard.
            Cut(
                "functions.pipeline.publish",
                "        if after - before != expected:",
                "        if False:",
            ),
        ),
        opening="A_MEDDLER",
    ),
    Guard(
        "people are told before it is written down that they were",
        "nobody was told",
        (
            Cut(
                "functions.pipeline.finish",
                "    world.alerts.post(ingestion.channel, _message",
                '    ingestion = world.ledger.save(ingestion.step("", "", alerted=True))\n'
                "    world.alerts.post(ingestion.channel, _message",
            ),
        ),
    ),
    Guard(
        "readers are told before it is written down that they were",
        "readers were not told",
        (
            Cut(
                "functions.pipeline.finish",
                "    world.announcements.send(",
                '    ingestion = world.ledger.save(ingestion.step("", "", announced=True))\n'
                "    world.announcements.send(",
            ),
        ),
    ),
    Guard(
        "the sweep looks for what readers were not told",
        "readers were not told",
        (
            Cut(
                "functions.model.ingestion",
                "self.untold or self.unannounced or",
                "self.untold or",
            ),
        ),
    ),
    Guard(
        "readers are told where the table stands at one moment",
        "readers were told of another table",
        (
            Cut(
                "functions.pipeline.finish",
                "world.catalog.metadata(tip.hash, name)",
                "world.catalog.metadata(world.catalog.tip().hash, name)",
            ),
        ),
    ),
    Guard(
        "published branches are deleted",
        "left behind",
        (
            Cut(
                "functions.pipeline.finish",
                "        world.catalog.delete_branch(branch)\n    _note_cleaned(",
                "        pass\n    _note_cleaned(",
            ),
        ),
    ),
    Guard(
        "the sweep looks for landed objects that nobody announced",
        "never at rest",
        (
            Cut(
                "functions.sweep",
                '        _each("forgotten", _forgotten(world, before), partial(take_in, world)),\n',
                "",
            ),
        ),
    ),
    Guard(
        "the sweep goes on with what is unfinished",
        "never at rest",
        (
            Cut(
                "functions.sweep",
                '        _each("resumed", _due(world, before), partial(_resume, world)),\n',
                "",
            ),
        ),
    ),
    Guard(
        "the sweep reads the dead letters",
        "never at rest",
        (
            Cut(
                "functions.sweep",
                "uploads.read(), ",
                "(), ",
            ),
        ),
    ),
    Guard(
        "a dead letter is forgotten after it was dealt with",
        "nobody was told",
        (
            Cut(
                "functions.sweep",
                "    try:\n        work(world, letter.body)\n",
                "    queue.forget(letter)\n    try:\n        work(world, letter.body)\n",
            ),
        ),
        opening="AN_UNREADABLE_MESSAGE",
    ),
    Guard(
        "a job run that is lost is an end",
        "never at rest",
        (
            Cut(
                "functions.pipeline.complete",
                'return end(world, ingestion, State.ERRORED, Reason("JOB_LOST", error.message))',
                "raise",
            ),
        ),
    ),
    Guard(
        "what was merged before is published",
        "doubled",
        (
            Cut(
                "functions.pipeline.publish",
                "    return merged or ",
                '    if not merged:\n        raise NotOnMain("", "")\n    return merged or ',
            ),
            _LOOK_AFTER_THE_CUT,
        ),
    ),
    Guard(
        "where the branch is gone, main's log is asked",
        "doubled",
        (
            Cut(
                "functions.pipeline.publish",
                'logger.info("the branch is gone: main\'s log tells whether it was merged")',
                'raise NotOnMain("", "") from None',
            ),
            _LOOK_AFTER_THE_CUT,
        ),
        opening="MERGED_BUT_NOT_RECORDED",
    ),
    Guard(
        "all intents are swapped in one write",
        "doubled",
        (
            Cut(
                "functions.pipeline.publish",
                "    world.ledger.save_all([member",
                "    save_all = lambda each: [*map(world.ledger.save, each)]\n    save_all([member",
            ),
            # Behind it stands another guard, which is removed alone further down.
            Cut(
                "functions.pipeline.publish",
                "    if not unit.complete:",
                "    if False:",
            ),
        ),
        opening="A_SWAP",
    ),
    Guard(
        "a group is merged only after its swap",
        "doubled",
        (
            Cut(
                "functions.pipeline.publish",
                "    at = world.now()\n    world.ledger.save_all(",
                "    at = world.now()\n"
                "    properties = commits.properties(members)\n"
                "    world.catalog.merge(fresh, intent.hash, base, '', properties)\n"
                "    world.ledger.save_all(",
            ),
            _LOOK_BEFORE_ENTERING,
        ),
        opening="WAITING_TOGETHER",
    ),
    Guard(
        "what main took already is not entered again",
        "doubled",
        (
            Cut(
                "functions.pipeline.publish",
                " and not since.names(unit)",
                "",
            ),
        ),
    ),
    Guard(
        "what main can still take is left as it is",
        "doubled",
        (
            Cut(
                "functions.pipeline.publish",
                "unit.members[0].table in since.tables and ",
                "",
            ),
            _LOOK_BEFORE_ENTERING,
        ),
        opening="A_LATE_FILE_AND_A_GROUP",
    ),
    Guard(
        "replaced branches are deleted",
        "still there",
        (
            Cut(
                "functions.pipeline.publish",
                "    for branch in replaced:\n        world.catalog.delete_branch(branch)\n",
                "",
            ),
        ),
        opening="A_TABLE",
    ),
    Guard(
        "files are entered only into the table that they were written for",
        "cannot read",
        (
            Cut(
                "tests.fakes.catalog",
                "if audited.uuid != current.uuid:",
                "if False:",
            ),
        ),
    ),
    Guard(
        "files are entered only where they can be read as written",
        "cannot read",
        (
            Cut(
                "tests.fakes.catalog",
                "if not set(audited.columns) <= set(current.columns) or any(",
                "if False and any(",
            ),
        ),
    ),
    Guard(
        "no group is merged of which the ledger lacks a member",
        "doubled",
        (
            Cut(
                "functions.pipeline.publish",
                "    if not unit.complete:",
                "    if False:",
            ),
        ),
        opening="A_GROUP_LOSES_A_MEMBER",
    ),
    Guard(
        "all files of a batch are entered anew",
        "lost or doubled",
        (
            Cut(
                "functions.pipeline.batches",
                "    for table in ingestion.tables:",
                "    for table in ingestion.tables[:1]:",
            ),
        ),
        opening="BATCHES",
    ),
    Guard(
        "who has passed comes before who landed earlier",
        "twice",
        (
            Cut(
                "functions.pipeline.duplicates",
                "    if one.state in _PASSED:\n",
                "    if False:\n",
            ),
        ),
        opening="A_LATE_TWIN",
    ),
    Guard(
        "people are told what was published with warnings",
        "nobody was told",
        (
            Cut(
                "functions.model.ingestion",
                "(self.duplicate_of or self.warnings)",
                "self.duplicate_of",
            ),
        ),
    ),
    Guard(
        "a batch brings what was there when its manifest landed",
        "LIKELY_DUPLICATE|when the manifest landed",
        (
            Cut(
                "functions.pipeline.batches",
                "    there = world.landing.newest(prefix, at)\n",
                "    there = world.landing.newest(prefix)\n",
            ),
        ),
        opening="BATCHES",
    ),
    Guard(
        "a batch is published only where all of its files passed",
        "must not end published",
        (
            Cut("lakegate.batch", "    for worst in _WORST:", "    for worst in ():"),
            # Behind it stands another guard.
            Cut(
                "functions.pipeline.complete",
                "    if any(_is_unfounded(single) for single in report.singles):",
                "    if not report.parts and _is_unfounded(report):",
            ),
        ),
        opening="BATCHES",
    ),
    Guard(
        "only who has the newest word gives up a branch",
        "evidence is gone",
        (
            Cut(
                "functions.pipeline.intake",
                '    metrics.add_metric("RunsAgain"',
                "    world.catalog.delete_branch(ingestion.branch)\n"
                '    metrics.add_metric("RunsAgain"',
            ),
        ),
        opening="VERSIONS",
    ),
    Guard(
        "a late decision publishes nothing",
        "published after a newer version",
        (
            Cut(
                "functions.pipeline.publish",
                "if ingestion.is_decided and (late := given_way(world, ingestion)):",
                "if False and (late := given_way(world, ingestion)):",
            ),
        ),
        opening="A_LATE_DECISION",
    ),
    Guard(
        "what failed once is published by itself",
        "published after a newer version",
        (
            Cut(
                "functions.pipeline.publish",
                "waiting.replaces or waiting.change or waiting.parts or waiting.is_decided",
                "waiting.replaces or waiting.change or waiting.parts",
            ),
        ),
        opening="A_LATE_DECISION",
    ),
    Guard(
        "a newer version closes what failed before",
        "not closed by one of",
        (
            Cut(
                "functions.pipeline.finish",
                "    if ingestion.state is State.PUBLISHED:\n        for failed",
                "    if False:\n        for failed",
            ),
        ),
    ),
    Guard(
        "a failure looks for a newer version that is published",
        "not closed by one of",
        (
            Cut(
                "functions.pipeline.finish",
                "if failed.is_open else None",
                "if False else None",
            ),
        ),
    ),
)
