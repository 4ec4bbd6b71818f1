"""Attributes of vertices: found and checked, read in blocks, and sent to the buckets of their vertices.

    every block   read_attributes
    exchange 1    send_attributes    blocks → buckets: publish_attributes

Buckets are those of the ids (tasks/ingest/numbering.py), so the table of attributes has the order of the vertices.
Imports `ids`, `ingest`, `inputs`, `publish`, `storage` and `tables`. Start with `source`.
"""

from .joining import (
    AttributeRows,
    BucketAttributes,
    Published,
    bucket_range,
    publish_attributes,
    read_attributes,
    send_attributes,
)
from .listed import read_listed_ids
from .source import AttributeBlock, AttributeSource, open_attributes, plan_attribute_blocks

__all__ = [
    "AttributeBlock",
    "AttributeRows",
    "AttributeSource",
    "BucketAttributes",
    "Published",
    "bucket_range",
    "open_attributes",
    "plan_attribute_blocks",
    "publish_attributes",
    "read_attributes",
    "read_listed_ids",
    "send_attributes",
]
