"""The keys of the local AWS: whoever may not use a KMS key gets nothing that it encrypts.

ministack stores under which key an object, a queue, a table or a secret is encrypted, and asks
nobody. In AWS the service uses the key with the caller's rights, of which the condition key
`kms:ViaService` names the service. The root and AWS's own services are not asked here: whether a
key's policy lets them is AWS's alone to know.
"""

import secrets
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from ministack.core import iam_actions, iam_evaluator
from ministack.core.router import extract_access_key_id
from ministack.services import dynamodb, s3, secretsmanager, sqs
from ministack.services.cloudformation import provisioners

_KEY = "x-amz-server-side-encryption-aws-kms-key-id"
_AWS_KEY: Mapping[str, Any] = {}  # what is encrypted by a key that AWS owns names none
_DECRYPT, _GENERATE = "kms:Decrypt", "kms:GenerateDataKey"
# What a call takes of the resource's key. Sending proves a new data key by decrypting it, and a
# table has a data key of its own (KMS Developer Guide, "How AWS services use AWS KMS").
_TAKES = {
    "sqs:SendMessage": (_GENERATE, _DECRYPT),
    "sqs:ReceiveMessage": (_DECRYPT,),
    "secretsmanager:GetSecretValue": (_DECRYPT,),
    "secretsmanager:PutSecretValue": (_GENERATE, _DECRYPT),
    **{
        f"dynamodb:{name}": (_DECRYPT,)
        for name in (
            *("BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "Scan", "UpdateItem"),
        )
    },
}


def enforce_keys() -> None:
    """Let each request also take the rights on the key of what it is about."""
    _guard_objects()
    _encrypt_buckets()
    _encrypt_tables()
    enforce = iam_evaluator.enforce

    def enforce_with_key(key: str, action: str, *more: Any, **context: Any) -> Any:
        refusal = enforce(key, action, *more, **context)
        if refusal is not None or action not in _TAKES:
            return refusal
        arn = _key_of(action, str(context.get("resource_arn", "*")))
        needed = _TAKES[action] if arn else ()
        answers = (_asked(key, each, arn, action.partition(":")[0]) for each in needed)
        return next((each for each in answers if each is not None), None)

    iam_evaluator.enforce = enforce_with_key


def _asked(caller: str, action: str, key: str, service: str) -> Any:
    """Return IAM's refusal of a key to the caller of a service, None if it allows it."""
    region = key.split(":")[3]
    via = {"kms:ViaService": f"{service}.{region}.amazonaws.com"}
    return iam_evaluator.enforce(
        caller, action, "kms", region, resource_arn=key, service_context=via
    )


def _key_of(action: str, resource: str) -> str:
    """Return the ARN of the key of a queue, a table or a secret, "" for AWS's own."""
    service, name = action.partition(":")[0], resource.split(":", 5)[-1]
    match service:
        case "sqs":
            queues = sqs._queues._data.values()  # noqa: SLF001
            matches = (q["attributes"] for q in queues if q["attributes"]["QueueArn"] == resource)
            return str(next(matches, _AWS_KEY).get("KmsMasterKeyId", ""))
        case "dynamodb":
            table = dynamodb._tables.get(name.split("/")[1]) or {}  # noqa: SLF001
            return str((table.get("SSEDescription") or {}).get("KMSMasterKeyArn", ""))
        case _:
            every = secretsmanager._secrets._data.values()  # noqa: SLF001
            named = (each for each in every if each["ARN"] == resource)
            return str(next(named, _AWS_KEY).get("KmsKeyId") or "")


_looks = ContextVar("looks", default=False)
_encrypts = ContextVar("encrypts", default=False)


def _guard_objects() -> None:
    """Let S3 ask when it reads or writes an object's bytes.

    Its words are those of "Troubleshoot access denied errors". A HEAD request reads none. The etag
    of such an object is no digest of its bytes.
    """
    for name in ("_check_sse_read_headers", "_check_sse_c_copy_source", "_check_sse_c_part"):
        setattr(s3, name, _guarded(getattr(s3, name)))
    resolve, head, digest = s3._resolve_sse_write_headers, s3._head_object, s3.md5_hash  # noqa: SLF001

    def resolve_allowed(headers: dict, bucket: str) -> Any:
        encryption, refusal = resolve(headers, bucket)
        _encrypts.set(_KEY in (encryption or {}))
        return encryption, refusal or _denial(headers, _GENERATE, encryption or {})

    def head_without_bytes(bucket: str, key: str, headers: dict, *more: Any) -> Any:
        _looks.set(headers.get("x-amz-checksum-mode", "") != "ENABLED")
        try:
            return head(bucket, key, headers, *more)
        finally:
            _looks.set(False)

    def digest_unless_encrypted(body: bytes) -> str:
        return secrets.token_hex(16) if _encrypts.get() else str(digest(body))

    s3._resolve_sse_write_headers = resolve_allowed  # noqa: SLF001
    s3._head_object, s3.md5_hash = head_without_bytes, digest_unless_encrypted  # noqa: SLF001


def _encrypt_buckets() -> None:
    """Give buckets the default encryption of their template, which ministack passes over."""
    put, delete = s3._put_bucket_encryption, s3._delete_bucket_encryption  # noqa: SLF001
    provisioners._S3_BUCKET_CONFIGURATIONS += (  # noqa: SLF001
        ("BucketEncryption", _encryption_xml, put, delete),
    )


def _encryption_xml(told: dict) -> bytes:
    (rule,) = told["ServerSideEncryptionConfiguration"]
    fields = rule["ServerSideEncryptionByDefault"].items()
    return f"<Default>{''.join(f'<{n}>{text}</{n}>' for n, text in fields)}</Default>".encode()


def _encrypt_tables() -> None:
    """Give new tables the key of their template, which ministack passes over."""
    handlers = provisioners._RESOURCE_HANDLERS["AWS::DynamoDB::Table"]  # noqa: SLF001
    create = handlers["create"]

    def create_encrypted(name: str, props: dict, stack: str) -> Any:
        made = create(name, props, stack)
        if told := props.get("SSESpecification"):
            spec = {**told, "Enabled": told["SSEEnabled"]}
            described = dynamodb._sse_description_from_spec(spec)  # noqa: SLF001
            dynamodb._tables[made[0]]["SSEDescription"] = described  # noqa: SLF001
        return made

    handlers["create"] = create_encrypted


def _guarded(check: Callable[[dict, dict], Any]) -> Callable[[dict, dict], Any]:
    def checked(headers: dict, stored: dict) -> Any:
        refusal = check(headers, stored)
        if refusal or _looks.get():
            return refusal
        return _denial(headers, _DECRYPT, stored.get("preserved_headers", {}))

    return checked


def _denial(headers: dict, action: str, encrypted: Mapping[str, str]) -> Any:
    """Return S3's refusal for an object with these headers, None where the caller may."""
    key, caller = encrypted.get(_KEY, ""), extract_access_key_id(headers)
    refusal = _asked(caller, action, key, "s3") if key and caller else None
    if refusal is None:
        return None
    told = iam_actions.identity_denial_message(
        action, refusal.principal_arn, key, refusal.decision == "Deny"
    )
    return s3._error("AccessDenied", told, 403)  # noqa: SLF001
