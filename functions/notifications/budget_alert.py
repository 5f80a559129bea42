"""Tell people once a day that the budget of job runs is used up, and what waits for it."""

from functions.adapters.all import Adapters
from functions.model.budget import Spending
from functions.model.messages.alert import Alert
from functions.notifications.blocks import notice

_REMEDY = (
    "They stay in their queues and go on by themselves after 00:00 UTC. To start them now, raise "
    "`DailyBudgetUsd` in `stages/{stage}.yml` and run `lakegate deploy --stage {stage}`."
)


def tell_budget(adapters: Adapters, spending: Spending, files: int) -> None:
    """Alert people if the day's budget is used up while files wait for a job run."""
    settings = adapters.settings
    if files and spending.is_used_up(settings.daily_budget_usd):
        alert = budget_used_up(spending, settings.daily_budget_usd, files, settings.stage)
        adapters.alerts.post("", alert)


def budget_used_up(spending: Spending, budget: int, files: int, stage: str) -> Alert:
    """Return the alert, which is shown once a day for each amount."""
    wait = "file waits" if files == 1 else "files wait"
    title = f"The day's budget is used up: {files:,} {wait} for a job run"
    amounts = f"EMR Serverless, {spending.day}: {spending.amounts(budget)}."
    words = f"{amounts} {_REMEDY.format(stage=stage or 'S')}"
    return notice(title, words, f"{spending.day} budget {budget}", "DAILY_BUDGET")
