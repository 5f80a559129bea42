"""The options of every Nessie of this project: one source for the local stack and for AWS.

The options are Nessie's own (its documentation, "Configuration"). They reach the server as
environment variables of exactly these names, as in the compose files that Nessie ships: the
upper-case spelling silently loses options that lie in a group (`default-options`).
`infra/platform.yml` repeats them, so that it can be read and deployed alone; a test compares.
"""

from infra.nessie_tokens import ISSUER

# Permissions on references, in CEL. Everything that no rule allows is refused.
RULES = {
    "everyone": "op in ['VIEW_REFERENCE', 'READ_ENTITY_VALUE', 'READ_ENTRIES', 'READ_CONTENT_KEY',"
    " 'LIST_COMMIT_LOG']",
    "uploader": "role == 'lakegate-uploader' && ref.startsWith('ingest/')"
    " && op in ['CREATE_REFERENCE', 'DELETE_REFERENCE', 'ASSIGN_REFERENCE_TO_HASH']",
    "job": "role == 'lakegate-job' && ref.startsWith('ingest/')"
    " && op in ['COMMIT_CHANGE_AGAINST_REFERENCE', 'CREATE_ENTITY', 'UPDATE_ENTITY',"
    " 'DELETE_ENTITY', 'ASSIGN_REFERENCE_TO_HASH']",
    "publisher_main": "role == 'lakegate-publisher' && ref == 'main'"
    " && op in ['COMMIT_CHANGE_AGAINST_REFERENCE', 'CREATE_ENTITY', 'UPDATE_ENTITY',"
    " 'DELETE_ENTITY']",
    "publisher_ingest": "role == 'lakegate-publisher'"
    " && (ref.startsWith('ingest/') || ref.startsWith('publish/'))",
}
S3 = "nessie.catalog.service.s3.default-options"


def options(warehouse: str, region: str, public_key: str) -> dict[str, str]:
    """Return the options that are the same for each Nessie.

    `warehouse` is the lake's address (s3://), `public_key` the key that checks tokens, as base64 of
    its DER form. Ports, store and credentials are each server's own.
    """
    rules = {f"nessie.server.authorization.rules.{name}": rule for name, rule in RULES.items()}
    return {
        "nessie.server.authentication.enabled": "true",
        "quarkus.oidc.public-key": public_key,
        "quarkus.oidc.application-type": "service",
        "quarkus.oidc.token.issuer": ISSUER,
        "nessie.server.authorization.enabled": "true",
        **rules,
        "nessie.catalog.default-warehouse": "lake",
        "nessie.catalog.warehouses.lake.location": warehouse,
        # Ready means that it serves references: these need no lake, which on AWS comes later.
        "nessie.catalog.object-stores.health-check.enabled": "false",
        f"{S3}.region": region,
        # The credentials that the AWS SDK finds: a task's role or the environment's.
        f"{S3}.auth-type": "APPLICATION_GLOBAL",
        # The job has its own S3 credentials; signing each request for it only takes time.
        f"{S3}.request-signing-enabled": "false",
    }
