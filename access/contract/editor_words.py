"""What editors say beside Lakegate's own keys, and beside the standard's that Lakegate narrows."""

from collections.abc import Mapping

WORDS: Mapping[str, str] = {
    # the standard's
    "physicalName": "<namespace>.<table> for a table; the name in the file for a column.",
    "unique": "No value may come twice in a file.",
    "primaryKey": "Part of the key: never null, and no key twice in a file.",
    "classification": "Reports and alerts hide values unless this is missing, public or internal.",
    "severity": "error rejects the file, warning sends a notice, info only reports.",
    "unit": "Of the thresholds: rows, or percent of the rows.",
    # settings
    "landingPrefix": "Beginning of the keys whose files belong to the table.",
    "format": "Format of the files.",
    "options": "How files of a text format are written.",
    "allowSamples": "Reports and alerts may show rows.",
    "onDuplicate": "A file with the bytes of an earlier one is published, or held for a decision.",
    "onNewVersion": "New bytes under a key add their rows, or replace those of before.",
    "isolation": "Files share job runs, or each has its own.",
    "write": "Arrow writes the rows where it can, or Spark always does.",
    "writeMode": "Rows are added, merged by primary key, or replace their partitions.",
    "latestBy": "Column that decides which of several rows with one key stays.",
    "deleteWhen": "Column and value by which a row deletes its key.",
    "compaction": "Small data files are made into large ones by schedule, or never.",
    "batches": "Manifests may bring the table's files.",
    "quarantine": "So many bad rows are set aside without rejecting the file.",
    "extraColumns": "Columns that the contract lacks fail the file, are left out or are added.",
    "missingColumns": "Columns that the file lacks fail it, or are null.",
    "transform": "SELECT … FROM file, whose result is audited and published.",
    "sortOrder": "Columns by which rows are sorted within data files.",
    "tableProperties": "Properties of the Iceberg table.",
    "provenance": "Columns that say where each row comes from.",
    "droppedColumns": "Columns of an older contract that the table loses.",
    # options
    "scope": "The rule covers the file, the whole table, or the table's last days.",
    "where": "Only rows that meet this condition in Spark SQL count.",
    "warnUnless": "A second threshold, which only warns.",
    "failUnless": "Threshold of the rows whose value the other table lacks.",
    "onBadRow": "A bad row fails the file, or is quarantined.",
    "partitionTransform": "identity, year, month, day, hour, bucket[N] or truncate[N].",
    "formerName": "Name that the column had in an older contract.",
}
