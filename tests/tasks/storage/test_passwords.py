"""URLs and messages without secrets."""

from __future__ import annotations

import pytest

from edgemill.tasks.storage.passwords import without_passwords


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ftp://me:pass@host/edges", "ftp://***@host/edges"),
        (
            "cannot read https://b.s3.example/x.parquet?X-Amz-Date=1&X-Amz-Signature=abc%2F&X-Amz-Security-Token=x: no",
            "cannot read https://b.s3.example/x.parquet?X-Amz-Date=1&X-Amz-Signature=***&X-Amz-Security-Token=***",
        ),
        ("https://host/x?sv=1&sig=abc' and 'abfs://c@d/y'", "https://host/x?sv=1&sig=***' and 'abfs://***@d/y'"),
        ("s3://bucket/part-?.parquet and s3://b/?key=", "s3://bucket/part-?.parquet and s3://b/?key="),
        ("no URL? sig=abc", "no URL? sig=abc"),
    ],
)
def test_secrets_are_not_shown(text: str, shown: str) -> None:
    assert without_passwords(text).startswith(shown)
    assert "abc" not in without_passwords(text) or "://" not in text
