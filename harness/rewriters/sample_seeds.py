"""Seeds of samples: one for each question, so that samples do not depend on batches or on an interruption.

Standard library only.
"""

import hashlib


def seed_of(seed: int, *parts: object) -> int:
    """A seed, 0 to 2^63 - 1, that a seed and what is sampled determine."""
    text = "\x1f".join(map(str, (seed, *parts)))
    return int.from_bytes(hashlib.sha256(text.encode(errors="surrogatepass")).digest()[:8]) >> 1
