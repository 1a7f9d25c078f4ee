"""Random identifiers in the API's format."""

import random
import string

_ALPHABET = string.ascii_letters + string.digits
_LENGTH = 24
# Not the module's generator: if a test seeds `random`, two servers would generate the same ids.
_random = random.SystemRandom()


def new_id(prefix: str) -> str:
    """Return `prefix`, an underscore and 24 base62 characters."""
    return f"{prefix}_{''.join(_random.choices(_ALPHABET, k=_LENGTH))}"
