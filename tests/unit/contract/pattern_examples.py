"""Patterns that are refused because they can be very slow, and common patterns that are valid."""

# A pattern, and a text before, a part to repeat and a text after for which Java's time grows faster
# than the text's length.
SLOW_IN_JAVA = [
    (r"^(a+)+$", "", "a", "!"),
    (r"^(\d+)*,$", "", "1", "!"),
    (r"foo(a+)+$", "foo", "a", "!"),
    (r"^([a-zA-Z0-9]+\s?)*$", "", "a", "!"),
    (r"^([0-9]+,?)*;$", "", "1", "!"),
    (r"^(([a-z]+)|(\d+)|([a-z0-9]+))*$", "", "a", "!"),
    (r"^\w+([.-]?\w+)*@\w+([.-]?\w+)*(\.\w{2,3})+$", "", "a", "!"),
    (r"^(?=(a+)+$)b", "", "a", "!"),
    (r"(x+x+)+y", "", "x", "!"),
    (r"^.*.*.*x$", "", "a", "!"),
    (r"(.*)(.*)(.*)=$", "", "a", "!"),
    (r"\s+\s+x$", "", " ", "!"),
    (r"^\s*(.*?)\s*$", "", " ", "a\na"),
    (r"^[a-z]{1,99}[a-z]{1,99}[a-z]{1,99}[0-9]$", "", "a", "!"),
    (r"^(\w{1,50} ?){1,20}!$", "", "a", "?"),
    (r"^(.*,){11}P", "", ",", "!"),
]
SLOW_ELSEWHERE = [
    r"^(a|a)*$",
    r"^(a|ab?)*b$",
    r"^(a?){30}a{30}$",
    r"^(?:a{0,5}){0,5}b$",
    r"^(a*)*$",
    r"^(((a{0,99}){0,99}){0,99}){0,99}$",
]
# fmt: off
QUICK = [
    # e-mail
    r"^[^@ ]+@[^@ ]+$", r"^[^\s@]+@[^\s@]+\.[^\s@]+$",
    r"^[a-zA-Z0-9_.+-]+@[a-zA-Z0-9-]+\.[a-zA-Z0-9-.]+$",
    r"^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}$",
    # IBAN, card, currency, country
    r"^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$",
    r"^[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?$",
    r"^(EUR|USD|GBP|CHF|SEK|NOK|DKK|PLN|CZK|HUF)$", r"^(?:\d[ -]?){15}\d$",
    "^(" + "|".join(a + b for a in "ABCDEFGHIJKL" for b in "ABCDEFGHIJKLMNOPQRST") + ")$",
    # dates and times
    r"^\d{4}-\d{2}-\d{2}$", r"^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]$",
    r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3])(:[0-5]\d){2}(Z|[+-]\d\d:\d\d)$",
    # UUID, digests, versions, slugs
    r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
    r"^[0-9a-f]{64}$", r"^[a-z0-9]+(-[a-z0-9]+)*$",
    r"^v?\d+\.\d+\.\d+(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$",
    # IP addresses, hosts, web addresses
    r"^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)$",
    r"^((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.(?!$)|$)){4}$",
    r"^(([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|::1)$",
    r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,}$",
    r"^https?://[^\s/$.?#].[^\s]*$",
    # numbers, telephones
    r"^-?\d+(\.\d+)?$", r"^[+-]?\d{1,3}(,\d{3})*(\.\d+)?$",
    r"^\+?[0-9]{1,4}[ -]?[0-9]{1,4}[ -]?[0-9]{1,9}$",
    r"^N[0-9]{1,5}[A-Z]{0,2}$", r"[0-9]{5}",
    # names and free text
    r"^\p{L}+( \p{L}+)*$", r"^\S+( \S+)*$", r"^\S(.*\S)?$", r"^\s+|\s+$", r"^.*\.(jpg|png)$",
    r"\bno\b",
    r"^[^\p{Sc}]*$",
    # found at once, so the engine does not backtrack
    r"^(a+)+",
    r"^[a-z]*[a-z]*[a-z]*",
    # passwords
    r"^(?=.*[a-z])(?=.*[A-Z])(?=.*\d).{8,}$", r"^(?=.*\d.*\d)(?=.*[a-z].*[a-z]).+$",
]
# fmt: on
