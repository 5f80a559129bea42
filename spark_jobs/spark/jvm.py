"""Access the JVM behind PySpark, for what its Python interface does not offer.

PySpark has no public access to its Java objects; this module has every use of the private one.
"""

import json
from collections.abc import Iterator
from typing import Any

from py4j.java_gateway import JavaClass, JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors.exceptions.captured import AnalysisException, CapturedException
from pyspark.sql import SparkSession

JavaError = (Py4JJavaError, CapturedException)


_DEEPEST = 10


def items_of(collection: Any) -> Iterator[Any]:
    """Yield the items of a collection of Scala or Java.

    Py4J's own iterator ends with a Java exception, which costs PySpark 80 round trips to explain.
    """
    iterator = collection.iterator()
    while iterator.hasNext():
        yield iterator.next()


def texts_of(map_: Any) -> dict[str, str]:
    """Return a Java map of texts, read in one piece instead of item by item."""
    mapper = JavaClass("com.fasterxml.jackson.databind.ObjectMapper", map_._gateway_client)()
    return dict(json.loads(mapper.writeValueAsString(map_)))


def class_name(thing: Any) -> str:
    """Return the name of a Java object's class, without its package."""
    return str(thing.getClass().getSimpleName())


def known_gateway() -> JavaGateway | None:
    """Return the way to this process's Java, None before the first Spark."""
    return SparkContext._gateway


def has_ended() -> bool:
    """Return if the Spark that this process began is gone, and with it all that it can do."""
    context = SparkContext._active_spark_context
    try:
        return context is not None and bool(context._jsc.sc().isStopped())
    except Py4JError:  # nobody answers
        return True


def is_refusal(error: BaseException) -> bool:
    """Return if Spark refused its input with one of its error conditions."""
    return isinstance(error, CapturedException) and bool(error.getCondition())


def is_unplanned(error: BaseException) -> bool:
    """Return if Spark refused to make a plan, before it ran anything that may pass."""
    return isinstance(error, AnalysisException)


def error_condition(error: BaseException) -> str:
    """Return Spark's error condition and the unknown name, if any, without data."""
    if not isinstance(error, CapturedException):
        return "an exception"
    asked = (error.getMessageParameters() or {}).get("objectName", "")
    return f"{error.getCondition() or 'an exception'} {asked}".strip()


def short_message(error: BaseException) -> str:
    """Return a Java exception's message, on one line and without the statement and the plan."""
    text = str(error) if isinstance(error, CapturedException) else causes(error)[0]
    words = text.split("\n== SQL", 1)[0].split(";\n", 1)[0]
    return words.strip().replace("\n", " ")[:500]


def causes(error: BaseException) -> list[str]:
    """Return a Java exception and its causes, each as `class: message`, the root cause last."""
    origin = "java_exception" if isinstance(error, Py4JJavaError) else "_origin"
    cause = getattr(error, origin)
    chain: list[str] = []
    while cause is not None and len(chain) < _DEEPEST:
        chain.append(str(cause.toString()))
        cause = cause.getCause()
    return chain


def root_message(error: BaseException) -> str:
    """Return the root cause's message: its first line, without the class and the stack."""
    chain = causes(error)
    line = (chain[-1] if chain else str(error)).partition("\n")[0]
    return (line.partition(": ")[2] or line)[:500]


def gateway(spark: SparkSession) -> Any:
    """Return Py4J's gateway to the JVM."""
    return spark._sc._gateway


def java(spark: SparkSession) -> Any:
    """Return the JVM's packages."""
    return spark._jvm


def java_class(spark: SparkSession, name: str) -> Any:
    """Return a Java class by its full name; the packages of `java` cost a round trip each."""
    return JavaClass(name, gateway(spark)._gateway_client)


def java_session(spark: SparkSession) -> Any:
    """Return the session as Spark's own Scala object."""
    return spark._jsparkSession


def hide_setting(spark: SparkSession, key: str) -> None:
    """Keep a session's secret setting out of Spark's event log.

    Each job start is logged with the session's settings. Spark hides secret ones only if the
    SparkContext has them too (EventLoggingListener.redactProperties).
    """
    spark._sc._jsc.sc().conf().setIfMissing(key, "")


def trust(spark: SparkSession, authority: bytes) -> None:
    """Let this JVM's clients trust an authority (DER) besides those that they know.

    Iceberg's REST client takes no authority as a setting, only the JVM's default context.
    """
    store = java_class(spark, "java.security.KeyStore").getInstance("PKCS12")
    store.load(None, None)
    for number, issuer in enumerate(_known_authorities(spark, store)):
        store.setCertificateEntry(f"known-{number}", issuer)
    x509 = java_class(spark, "java.security.cert.CertificateFactory").getInstance("X.509")
    text = java_class(spark, "java.io.ByteArrayInputStream")(authority)
    store.setCertificateEntry("nessie", x509.generateCertificate(text))
    factory = _trust_managers(spark)
    factory.init(store)
    contexts = java_class(spark, "javax.net.ssl.SSLContext")
    context = contexts.getInstance("TLS")
    context.init(None, factory.getTrustManagers(), None)
    contexts.setDefault(context)


def _known_authorities(spark: SparkSession, store: Any) -> Any:
    """Return the certificates that this JVM trusts by itself."""
    factory, new_array = _trust_managers(spark), gateway(spark).new_array
    kinds = new_array(java_class(spark, "java.lang.Class"), 1)
    kinds[0] = store.getClass()
    # By its signature, as Py4J cannot tell which init is meant by None: it is the JVM's own store.
    init = factory.getClass().getMethod("init", kinds)
    init.invoke(factory, new_array(java_class(spark, "java.lang.Object"), 1))
    return factory.getTrustManagers()[0].getAcceptedIssuers()


def _trust_managers(spark: SparkSession) -> Any:
    factories = java_class(spark, "javax.net.ssl.TrustManagerFactory")
    return factories.getInstance(factories.getDefaultAlgorithm())


def iceberg_catalog_class(spark: SparkSession, name: str) -> str:
    """Return the class of the Iceberg catalog that a session opened under this name."""
    session = java_class(spark, "org.apache.spark.sql.classic.SparkSession")
    session.setActiveSession(java_session(spark))  # whose settings name the catalog's class
    plugin = java_session(spark).sessionState().catalogManager().catalog(name)
    return str(plugin.icebergCatalog().getClass().getName())


def first(pair: Any) -> Any:
    """Return the first item of a Scala pair."""
    return pair._1()
