"""A stand-in for Amazon EMR Serverless: applications that execute job runs on this machine.

It answers boto3's `emr-serverless` client as AWS does, executes Spark jobs in warm local drivers
(`infra/local/spark/driver.py`), and puts the events that AWS would on EventBridge.

    python -m infra.local.emr --port 4567 --home DIR [--drivers 2] [--prewarm] ...

There is one application, or with `--shared-application-id` a second one, apart from the first: each
has its own capacity, queue, drivers and job runs. They share the account's limits of calls.

Its state is in the home directory and survives a kill, by which it is stopped: `runs/<id>/` has a
run's `job_run.json`, `stdout` and `stderr`, `drivers/<application>/<number>/log` a driver's output.
After a kill, a run that was in a driver has failed, or is cancelled in the second application; one
that waited still waits, and client tokens are known.

`GET /_health` shows the drivers and how many runs are in each state. `PUT /_control` sets faults;
each PUT replaces the one before, so `{}` ends all; GET shows the faults that are left:

    {"events": {"lose": 1,              the next event (a number, or "all")
                "double": 1,            sends it twice
                "states": ["SUCCESS"]}, only for changes to these states (default: all)
     "fail_next_starts": 1,             StartJobRun fails and starts nothing (a number, as above)
     "lose_next_answers": 1,            StartJobRun starts the run, and yet the caller gets an error
     "fail_with": "InternalServerException"}    that error's name in the service model

It has the operations that Lakegate calls: StartJobRun, GetJobRun, ListJobRuns, GetApplication and
StopApplication. Each run has one attempt; a request for more is refused.

A run is admitted when its driver fits into its application's capacity, and then waits, RUNNING, for
its first executor ("Job run states"). An application is STARTED until it is idle or stopped. Local
files that a run names must exist on this machine, as EMR's image must have them. Jars and archives
must be there; a run finds the libraries of this machine's environment.

Where details are not in botocore's service model they follow AWS's documentation: the states "Job
run states", queueing "Job concurrency and queuing for an EMR Serverless application", events
"Automating EMR Serverless with Amazon EventBridge". Three details are not documented and
assumed: a used client token with other parameters is a conflict; the execution time-out counts from
the moment a run is SCHEDULED; a run that is QUEUED for too long ends CANCELLED, too. The driver of
a run that timed out is ended before the run is CANCELLED, so that the run writes nothing more.
"""
