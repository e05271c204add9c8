"""How large a schema may be, and how much work a value may make. The host has the same limits."""

from __future__ import annotations

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAX_NESTING = 32
"""Subschemas inside each other."""
MAX_SUBSCHEMAS = 2000
MAX_REFS = 500
MAX_BRANCHES = 64
"""Schemas of one allOf, anyOf, oneOf or prefixItems."""
MAX_IN_PLACE = 256
"""Subschemas that one value meets, through $ref and all alternatives."""
MAX_NAMES = 512
"""Names of one object: properties and required together."""
MAX_ENUM = 1000
MAX_PATTERNS = 200
MAX_ALL_POSITIONS = 16_384
"""Characters that all patterns together can match, with repeats written out."""
MAX_URI = 512
MAX_ANNOTATION = 4096

MAX_PROBLEMS = 20
"""Problems that are told; the rest is left out."""
BASE_WORK = 100_000
WORK_PER_BYTE = 4
"""A validation may cost BASE_WORK steps and so many for each byte of the value."""

WORK_LIMIT = "schema.limit"
