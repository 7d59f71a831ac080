"""What schemathesis may not report: each exception with its reason. At most 20, so that a new one needs a decision.

`st explain CODE` says what a code is. OPENAPI_USED names a file that gets a line for each use of an exception, and one
for each failure that none covers: main.mjs reports an exception that a whole run never used."""

import os
import re
from dataclasses import dataclass

import schemathesis

LIMIT = 20


@dataclass(frozen=True)
class Exempt:
    """Failures of these codes and statuses whose texts match: violations of the response, or else what the check says."""

    name: str
    codes: str
    statuses: str
    texts: str
    why: str

    def covers(self, code, status, text):
        return code in self.codes.split() and status in self.statuses.split() and re.search(self.texts, text) is not None


# "Schema-valid request rejected", by what is wrong with the request. The schemas are made of the contract's field rules;
# a service has further rules, which a schema either cannot state or which the wire contract does not mark.
EXCEPTIONS = [
    Exempt(
        "state", "ST202", "400", r"^Precondition failed: ",
        "Whether a precondition holds depends on what is stored, and such a refusal is 400 by the wire contract.",
    ),
    Exempt(
        "dependent fields", "ST202", "400",
        r"(is|are) required\b|^Audience must be specified|exclude each other|and not both$|^means nothing where|must name ecosystems"
        r"|exactly one requirement must be set|must be set: a rule|is the name of another rule|the key at position \d+"
        r"|severity of the contract|is no trusted root|has neither a transparency|has no certificate authority|more than \d+ bytes|must be in the request once",
        "Fields that only some requests need, or that a service needs and the wire contract does not mark REQUIRED.",
    ),
    Exempt(
        "forms of texts", "ST202", "400",
        r"must be (a package URL|a day that exists|an e-mail address|an (absolute )?https|one SPDX|group:artifact|name or @scope|the name of|the identifier of)"
        r"|must match|must not contain (spaces|the character `)|is no identifier|not a valid pattern|must not be empty"
        r"|must be the JSON object|cannot be taken as|has a directory",
        "Texts that a parser reads: URLs, package names, licences, patterns, reports. Schemas have no parsers, and "
        "patterns in ECMA-262 lack the Unicode classes of the rules.",
    ),
    Exempt(
        "enum subsets", "ST202", "400", r"must be ([A-Z][A-Z_]+|npm)\b|must say where",
        "A service takes some values of an enum, or needs one that is not UNSPECIFIED.",
    ),
    Exempt(
        "ranges", "ST202", "400",
        r"must be (\d+ to \d+|1 or more|more than)|at most \d+ (days|elements|characters)|must not be before"
        r"|is over already|at most two years ahead|one file at least|must not be negative|negative length|is out of range|expected a duration",
        "Ranges that a service checks, and those of durations and 64-bit numbers, which patterns only approach.",
    ),
    Exempt(
        "update masks", "ST202", "400", r"is not a field of|set by the server and cannot be changed",
        "A mask names fields of one message, which no schema of a text says.",
    ),
    Exempt("page tokens", "ST202", "400", r"the token is damaged", "Only tokens of an earlier page are valid."),
    Exempt(
        "orders", "ST202", "400", r"is not a field to sort by|the direction is asc or desc",
        "Every list has its own fields to sort by, which the contract's text for people names.",
    ),
    Exempt(
        "references", "ST202", "400",
        r"names no |must name a|is not in organization|unknown capability|invitation code is not valid|is no audience|that of the token",
        "The value must name something that exists, or that this server serves.",
    ),
    Exempt(
        "typed messages", "ST202", "400", r"\\?\"@type\\?\"|a message of the type|the full name of a method|Any: |unknown message",
        "An Any holds a message of the contract, with its type in `@type`; the schema of one has no other members.",
    ),
    Exempt(
        "UIDPs", "ST202", "400", r"must be (a|the) UIDP",
        "Parents take the name of a verified organization as well, and filters are checked by their service.",
    ),
    Exempt("U+0000", "ST202", "400", r"must not contain the character U\+0000", "No text may have it; schemas would need a pattern for each."),
    Exempt(
        "not offered", "ST101", "501", r"does not offer",
        "Methods of the wire contract that this server does not have say so with 501, as documented.",
    ),
    Exempt(
        "JSON of protocol buffers", "ST201", "200", r"Incorrect type|became (null|integer|number|string)",
        "Its mapping takes null for an absent member, numbers for names of enum values, and numbers for 64-bit texts.",
    ),
    Exempt(
        "HTTP limits", "ST104 ST109 ST201 ST202", "414 431", r"",
        "Addresses and headers past the limits of the HTTP library never reach the API: the response is its own.",
    ),
    Exempt(
        "verbs of wildcards", "ST204", "400", r"(is required|must be a UIDP)|^malformed JSON|^expected an object",
        "`**` of a path template takes any rest, or none: another method's template claims the path, and its field is wrong.",
    ),
    Exempt("Allow of wildcards", "ST205", "405", r"Undocumented methods advertised", "As above: those methods do take the path."),
]
assert len(EXCEPTIONS) <= LIMIT and all(one.why for one in EXCEPTIONS)


def violations(response):
    """What the response says is wrong, one text for each field."""
    try:
        body = response.json()
        described = [one["description"] for detail in body["details"] for one in detail.get("fieldViolations", [])]
        return described or [body["message"].removeprefix("Invalid argument: ")]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


@schemathesis.hook
def filter_failure(context, failure, case, response):
    status = str(response.status_code)
    texts = [failure.message] if failure.code in ("ST201", "ST205") else violations(response) or [failure.message]
    found = [next((one for one in EXCEPTIONS if one.covers(failure.code, status, text)), None) for text in texts]
    path = os.environ.get("OPENAPI_USED")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            for one, text in zip(found, texts, strict=True):
                file.write(f"{one.name}\n" if one else f"-\t{failure.code}\t{status}\t{failure.operation}\t{text[:300]!r}\n")
    return None in found
