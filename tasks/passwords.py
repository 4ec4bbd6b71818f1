"""Passwords in URLs, as in `ftp://me:password@host/edges`, which nobody is to read."""

from __future__ import annotations

import re

__all__ = ["without_passwords"]

_PASSWORD = re.compile(r"://[^/@\s]*@")


def without_passwords(text: str) -> str:
    """The text with `***` for the user and password of each URL in it."""
    return _PASSWORD.sub("://***@", text)
