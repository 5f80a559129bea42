"""What Spark's Python interface does not offer, taken from the JVM behind it.

PySpark has no public way to its own Java objects; every use of the private one is here.
"""

from collections.abc import Iterator
from typing import Any

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession

JavaError = (Py4JJavaError, CapturedException)


_DEEPEST = 10


def each(scala: Any) -> Iterator[Any]:
    """What a Scala collection holds."""
    iterator = scala.iterator()
    while iterator.hasNext():
        yield iterator.next()


def class_name(thing: Any) -> str:
    """The name of a Java object's class, without its package."""
    return str(thing.getClass().getSimpleName())


def texts(sequence: Any) -> list[str]:
    """The texts in one of Scala's sequences."""
    return [str(sequence.apply(n)) for n in range(sequence.size())]


def is_refusal(error: BaseException) -> bool:
    """Whether Spark refuses what it was told, by a name of its own (its "error conditions")."""
    return isinstance(error, CapturedException) and bool(error.getCondition())


def refusal(error: BaseException) -> str:
    """What Spark refuses in its own terms alone: the condition, and the name that is not there."""
    if not isinstance(error, CapturedException):
        return "an exception"
    asked = (error.getMessageParameters() or {}).get("objectName", "")
    return f"{error.getCondition() or 'an exception'} {asked}".strip()


def sentence(error: BaseException) -> str:
    """What a Java exception says, without the statement and the plan that Spark adds."""
    text = str(error) if isinstance(error, CapturedException) else causes(error)[0]
    return text.split("\n== SQL", 1)[0].split(";\n", 1)[0].strip()[:500]


def causes(error: BaseException) -> list[str]:
    """A Java exception and what caused it, each as `class: message`, the root cause last."""
    origin = "java_exception" if isinstance(error, Py4JJavaError) else "_origin"
    cause = getattr(error, origin)
    chain: list[str] = []
    while cause is not None and len(chain) < _DEEPEST:
        chain.append(str(cause.toString()))
        cause = cause.getCause()
    return chain


def said(error: BaseException) -> str:
    """What a Java exception says at its root: the first line, without the class and the stack."""
    chain = causes(error)
    line = (chain[-1] if chain else str(error)).partition("\n")[0]
    return (line.partition(": ")[2] or line)[:500]


def gateway(spark: SparkSession) -> Any:
    """Py4J's way into the JVM."""
    return spark._sc._gateway


def java(spark: SparkSession) -> Any:
    """The JVM's packages."""
    return spark._jvm


def java_class(spark: SparkSession, name: str) -> Any:
    """A Java class by its full name; asking package by package costs a round trip each."""
    return JavaClass(name, gateway(spark)._gateway_client)


def java_session(spark: SparkSession) -> Any:
    """The session as Spark's own Scala object."""
    return spark._jsparkSession


def hide_setting(spark: SparkSession, key: str) -> None:
    """Keep a session's setting, whose name must speak of a secret, out of Spark's event log.

    Each job's start is logged with the session's settings, and Spark hides the secret ones only of
    those that the SparkContext has too (EventLoggingListener.redactProperties).
    """
    spark._sc._jsc.sc().conf().setIfMissing(key, "")


def first(pair: Any) -> Any:
    """The first of a Scala pair."""
    return pair._1()
