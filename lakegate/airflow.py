"""The sensor for Airflow, which is looked up above this package (docs/integrations.md)."""

from importlib import import_module

IngestionSensor = import_module("access.sensors.airflow").IngestionSensor
