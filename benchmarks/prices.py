"""AWS's list prices, in US dollars: us-east-1, x86, as known on 2026-11-21.

Check before you rely on them: https://aws.amazon.com/pricing/. Nothing here was read from a bill.
"""

from dataclasses import dataclass

DATE = "2026-11-21"
REGION = "us-east-1"
HOURS = 730  # a month


@dataclass(frozen=True)
class Prices:
    """Each for one of what its name says; `_m` is for a million."""

    emr_vcpu_hour: float = 0.052624
    emr_gigabyte_hour: float = 0.0057785
    lambda_request_m: float = 0.20
    lambda_gigabyte_second: float = 0.0000166667
    dynamodb_write_m: float = 0.625  # on demand, since November 2024
    dynamodb_read_m: float = 0.125
    dynamodb_gigabyte_month: float = 0.25
    sqs_request_m: float = 0.40
    event_m: float = 1.00
    s3_put_m: float = 5.00  # also POST, COPY and LIST
    s3_get_m: float = 0.40  # and all others
    s3_gigabyte_month: float = 0.023
    logs_gigabyte: float = 0.50
    # by the hour, whatever lands
    fargate_vcpu_hour: float = 0.03238  # ARM
    fargate_gigabyte_hour: float = 0.00356
    load_balancer_hour: float = 0.0225
    database_hour: float = 0.016  # db.t4g.micro, PostgreSQL, one zone
    database_gigabyte_month: float = 0.115
    endpoint_hour: float = 0.01  # an interface endpoint in one zone
    endpoint_gigabyte: float = 0.01
    address_hour: float = 0.005  # a public IPv4 address
    alarm_month: float = 0.10
    secret_month: float = 0.40


PRICES = Prices()
