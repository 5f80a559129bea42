"""A stand-in for Amazon EMR Serverless: one application whose job runs really run, on this machine.

It answers boto3's `emr-serverless` client as AWS does, executes Spark jobs in warm local drivers
(`infra/local/spark_driver.py`), and puts the events that AWS would on EventBridge.

    python -m infra.local.emr --port 4567 --home DIR [--drivers 2] [--prewarm] ...

Its state is in the home directory and survives a kill, which is the way to stop it: `runs/<id>/`
has a run's `run.json`, `stdout` and `stderr`, `drivers/<number>/log` what a driver says. A run that
was in a driver then has failed (and runs again where attempts are left), one that waited goes on
waiting, and every client token is remembered.

`GET /_health` tells the drivers and how many runs are in which state. `PUT /_control` tells it what
is to go wrong; each PUT replaces the one before, so `{}` ends all of it; GET shows what is left:

    {"events": {"lose": 1,              the next event (a number, "all", or a share such as 0.5)
                "double": 1,            sends it twice
                "reverse": 3,           holds the next 3 and sends them in reverse order
                "delay_seconds": 5,     sends each 5 seconds late
                "states": ["SUCCESS"]}, only the changes to these states suffer (default: all)
     "fail_next_starts": 1,             StartJobRun fails and starts nothing (a number, as above)
     "lose_next_answers": 1,            StartJobRun starts the run, and yet the caller gets an error
     "fail_with": "InternalServerException"}    that error's name in the service model

Where details are not in botocore's service model they follow AWS's documentation: the states "Job
run states", retries "EMR Serverless Job resiliency", queueing "Job concurrency and queuing for an
EMR Serverless application", cancelling "EMR Serverless job run cancellation with grace period",
events "Automating EMR Serverless with Amazon EventBridge". Four things these do not settle are
decided so: a client token that comes with other parameters is a conflict; an attempt that another
follows sends no FAILED event, but the retry event and then SUBMITTED; the execution time-out counts
from the moment an attempt is SCHEDULED and is not retried; a run that is QUEUED for too long ends
CANCELLED too. A cancelled run's driver is ended before the run is CANCELLED, so that nothing of it
can write any more.
"""
