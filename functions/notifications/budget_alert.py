"""Tell people that a day's budget of job runs has no room or is used up, and what waits for it."""

from collections.abc import Sequence
from datetime import timedelta

from functions.adapters.all import Adapters
from functions.model.budget import Spending
from functions.model.messages.alert import Alert
from functions.notifications.blocks import notice
from lakegate import times

_REMEDY = (
    "They stay in their queues and go on by themselves {when}. To start them now, raise "
    "`DailyBudgetUsd` in `stages/{stage}.yml` and run `lakegate deploy --stage {stage}`."
)


def tell_budget(adapters: Adapters, spending: Spending, waiting: Sequence[str]) -> None:
    """Alert people if files have waited for a job run, since these times, and none may start.

    Where runs under way may still leave room, a file must have waited long: what is held for a run
    that died is free again after midnight only.
    """
    settings = adapters.settings
    budget, long_ago = settings.daily_budget_usd, timedelta(minutes=settings.overdue_minutes)
    late = bool(waiting) and min(waiting) < times.earlier(adapters.now(), long_ago)
    if waiting and (spending.is_used_up(budget) or (late and not spending.admits(budget))):
        alert = budget_without_room(spending, budget, len(waiting), settings.stage)
        adapters.alerts.post("", alert)


def budget_without_room(spending: Spending, budget: int, files: int, stage: str) -> Alert:
    """Return the alert, which is shown once a day for each amount, and again once it is used up."""
    wait = "file waits" if files == 1 else "files wait"
    why, when, about = "is used up", "after 00:00 UTC", f"{spending.day} budget {budget}"
    if not spending.is_used_up(budget):
        why, when = "has no room", "when a run under way ends, or after 00:00 UTC"
        about += " has no room"
    title = f"The day's budget {why}: {files:,} {wait} for a job run"
    amounts = f"EMR Serverless, {spending.day}: {spending.amounts(budget)}."
    words = f"{amounts} {_REMEDY.format(when=when, stage=stage or 'S')}"
    return notice(title, words, about, "DAILY_BUDGET")
