"""The formats of strings that the standard names, as patterns (ECMA-262)."""

_HOST_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_HEX4 = "[0-9A-Fa-f]{1,4}"

# RFC 5322's addr-spec in the part that is in use, RFC 9562, RFC 3986's scheme, RFC 1123, RFC 4291,
# RFC 4648. `password` and `binary` say nothing about the characters.
PATTERNS = {
    "email": r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@" + rf"{_HOST_LABEL}(\.{_HOST_LABEL})+$",
    "uuid": "^[0-9A-Fa-f]{8}-([0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}$",
    "uri": r"^[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\x22{}|\\^`]+$",
    "hostname": rf"^{_HOST_LABEL}(\.{_HOST_LABEL})*$",
    "ipv4": rf"^({_OCTET}\.){{3}}{_OCTET}$",
    "ipv6": (
        rf"^(({_HEX4}:){{7}}{_HEX4}|({_HEX4}:){{1,7}}:|({_HEX4}:){{1,6}}(:{_HEX4})"
        rf"|({_HEX4}:){{1,5}}(:{_HEX4}){{1,2}}|({_HEX4}:){{1,4}}(:{_HEX4}){{1,3}}"
        rf"|({_HEX4}:){{1,3}}(:{_HEX4}){{1,4}}|({_HEX4}:){{1,2}}(:{_HEX4}){{1,5}}"
        rf"|{_HEX4}:((:{_HEX4}){{1,6}})|:((:{_HEX4}){{1,7}}|:))$"
    ),
    "byte": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
}
UNCHECKED = ("password", "binary")
