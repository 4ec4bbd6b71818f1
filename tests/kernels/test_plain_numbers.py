"""Text of numbers, against a reading field by field."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.kernels.cpu.arrays.strings import are_plain_numbers
from examples import examples


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("", True),
        ("7,0\n10,-3\r\n,5", True),
        ("1.5,1e-3,+4", True),
        ("007", False),
        ("7,00", False),
        ("7\n01", False),
        ("-0", False),
        ("1,-0.5", False),
        ("-10,10", True),
        ("0x7", False),
        ("7 ,8", False),
        ('"7"', False),
        ("7\r\r07", False),
    ],
)
def test_known(text: str, plain: bool) -> None:
    assert are_plain_numbers(text.encode(), ord(",")) == plain


@given(st.text(st.sampled_from("0017-+.e,;\r\n x"), max_size=30), st.sampled_from(",;"))
@settings(max_examples=examples(500))
def test_field_by_field(text: str, delimiter: str) -> None:
    fields = re.split(f"[{delimiter}\r\n]", text)
    plain = all(re.fullmatch(r"[0-9.eE+-]*", field) and not re.match(r"0[0-9]|-0", field) for field in fields)
    assert are_plain_numbers(text.encode(), ord(delimiter)) == plain
