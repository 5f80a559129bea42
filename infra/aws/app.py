"""The app's stack together with the code that it runs."""

from infra.aws.facts import JOB_RELEASE
from infra.aws.site import Site
from infra.aws.wanted import Wanted, bring
from infra.package import Package


def prepare(site: Site, package: Package) -> None:
    """Put code where a stack takes it from, and say which release of the job's it is.

    The job's code is there before a function names it, but for the very first time, when there is
    no lake bucket yet: then `complete` puts it there.
    """
    site.artifacts.put_code(package)
    site.artifacts.put_job(package)
    site.facts.put({JOB_RELEASE: package.job_release})


def deploy(site: Site, wanted: Wanted, package: Package) -> dict[str, str]:
    """Bring the app's stack to what is wanted; returns its outputs. Raises LakegateError."""
    prepare(site, package)
    bring(site, wanted)
    return complete(site, package)


def complete(site: Site, package: Package) -> dict[str, str]:
    """Put the job's code into the lake bucket that there is by now; returns the stack's outputs."""
    site.artifacts.put_job(package)
    return site.stacks.outputs(site.stage.stack)
