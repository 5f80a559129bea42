"""What a column's name tells of its values."""

import re

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# fmt: off
_PERSONAL = {
    "email", "mail", "phone", "telephone", "mobile", "fax", "iban", "bic", "ssn", "passport",
    "birthday", "birthdate", "birth", "dob", "surname", "firstname", "lastname", "fullname",
    "username", "street", "address", "salary", "gender", "ip", "password",
}
_PERSONS = {
    "first", "last", "middle", "full", "maiden", "given", "family", "user", "customer", "client",
    "person", "contact", "patient", "employee", "member", "passenger", "guest", "holder",
}
_MONEY = {
    "price", "amount", "amt", "cost", "total", "fee", "tax", "vat", "salary", "revenue", "discount",
    "balance", "payment", "fare", "tip", "charge", "turnover", "budget",
}
_KEYS = {"id", "uuid", "guid", "key", "code", "number", "no", "sku", "iban", "isbn", "ean"}
# fmt: on


def looks_personal(name: str) -> bool:
    """Whether a column of that name likely tells of a person: `email`, `customer_name`, `name`."""
    words = _words(name)
    a_persons_name = "name" in words and (len(words) == 1 or bool(_PERSONS.intersection(words)))
    return a_persons_name or bool(_PERSONAL.intersection(words))


def looks_like_money(name: str) -> bool:
    """Whether a column of that name is likely an amount of money: `unitPrice`, `total`."""
    return bool(_MONEY.intersection(_words(name)))


def looks_like_a_key(name: str) -> bool:
    """Whether a column of that name likely identifies something: `order_id`, `sku`."""
    return bool(_KEYS.intersection(_words(name)[-1:]))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]
