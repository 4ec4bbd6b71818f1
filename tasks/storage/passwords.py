"""Removal of secrets from URLs, as in `ftp://me:password@host/edges` or `https://host/edges?sig=…`."""

from __future__ import annotations

import re

_PASSWORD = re.compile(r"://[^/@\s]*@")
_QUERY = re.compile(r"://[^\s'\"?]*\?[^\s'\"]*")
_SECRET = re.compile(r"([?&][^=&]*(?:sig|token|secret|password|credential|key)[^=&]*=)[^&]+", re.IGNORECASE)
"""Query parameters of signed URLs: X-Amz-Signature, X-Goog-Credential, sig, access_token and others."""


def without_passwords(text: str) -> str:
    """The text with `***` for the user and password of each URL in it, and for secrets in its query."""
    text = _PASSWORD.sub("://***@", text)
    return _QUERY.sub(lambda url: _SECRET.sub(r"\1***", url[0]), text)
