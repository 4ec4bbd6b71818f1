"""JSON that bears a checksum of its own text, as its last key."""

from __future__ import annotations

from hashlib import sha256

_KEY = b',\n "sha256": "'
_END = b'"\n}\n'


def seal(text: str) -> bytes:
    """A JSON object, indented by one, with the SHA-256 of all that stands before it as one more key."""
    body = text.rstrip().removesuffix("}").rstrip().encode()
    return body + _KEY + sha256(body).hexdigest().encode() + _END


def is_whole(content: bytes) -> bool:
    """Whether the text is what was sealed. True where no checksum is: it was written by something else."""
    body, key, digest = content.rpartition(_KEY)
    return not key or digest == sha256(body).hexdigest().encode() + _END
