"""The keys of the standard, by where they stand: which matter to a file, and which do not.

`…_KNOWN` are honoured; `…_IGNORED` describe, and change no verdict; `…_REFUSED` would change one,
and are refused with the reason. Whatever is in none of them is no key of the standard's.
"""

from lakegate.expectations import Operator

# fmt: off
ROOT_KNOWN = (
    "id", "version", "kind", "apiVersion", "schema", "support", "team", "customProperties",
)
ROOT_IGNORED = (
    "name", "tenant", "tags", "status", "servers", "dataProduct", "description", "domain",
    "context", "price", "roles", "slaDefaultElement", "slaProperties", "contractCreatedTs",
    "authoritativeDefinitions",
)

SUPPORT_KNOWN = ("channel", "tool")
SUPPORT_IGNORED = ("id", "url", "description", "scope", "invitationUrl", "customProperties")

OBJECT_KNOWN = (
    "name", "physicalName", "logicalType", "properties", "quality", "customProperties",
    "relationships",
)
OBJECT_IGNORED = (
    "id", "physicalType", "description", "businessName", "deprecated", "synonyms", "tags",
    "authoritativeDefinitions", "dataGranularityDescription", "context",
)

PROPERTY_KNOWN = (
    "name", "physicalName", "logicalType", "physicalType", "logicalTypeOptions", "required",
    "unique", "primaryKey", "classification", "semanticType", "enum", "quality",
    "properties", "items", "map", "customProperties", "relationships",
)
PROPERTY_IGNORED = (
    "id", "description", "businessName", "deprecated", "synonyms", "authoritativeDefinitions",
    "tags", "partitioned", "partitionKeyPosition", "primaryKeyPosition",
    "encryptedName", "examples", "transformSourceObjects", "transformLogic",
    "transformDescription", "criticalDataElement",
)

RULE_KNOWN = (
    "id", "name", "type", "metric", "arguments", "unit", "severity", "customProperties", *Operator,
)
RULE_IGNORED = (
    "description", "dimension", "method", "businessImpact", "schedule", "scheduler", "tags",
    "authoritativeDefinitions",
)
RULE_REFUSED = {
    "validValues": "belongs under arguments",
    "pattern": "belongs under arguments",
    "missingValues": "belongs under arguments",
    "properties": "belongs under arguments",
    "rule": "is deprecated: write metric",
    "query": "belongs to type: sql",
    "engine": "belongs to type: custom",
    "implementation": "belongs to type: custom",
}
# fmt: on
