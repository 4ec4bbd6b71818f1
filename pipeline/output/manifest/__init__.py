"""manifest.json: what a run read, did and wrote. A run writes it last, so a folder with a manifest is a whole result.

Start with `model`. `inputs` and `records` hold what every run records, `bounds` what a run that computes λ adds, and
`files` reads and writes manifest.json. May import what `output` may.
"""

from .bounds import (
    BandsRecord,
    BoundingRecord,
    DenseRecord,
    EarlierRecord,
    ExchangeRecord,
    LambdaRecord,
    PartitionRecord,
    ShardsRecord,
    StreamErrorRecord,
    StreamRecord,
    TracksRecord,
)
from .files import (
    MANIFEST_NAME,
    folders_in_use,
    is_exact,
    is_result,
    next_track,
    read_manifest,
    run_of,
    write_manifest,
)
from .inputs import (
    BATCH,
    FrameRecord,
    InputFile,
    InputRecord,
    LayoutRecord,
    TableRecord,
    VerticesRecord,
    WeightRecord,
    WhereRecord,
)
from .model import FORMAT_VERSION, Manifest, RunManifest, versions
from .records import Counts, OutputRecord, PlanRecord, ProgramRecord, StageRecord
from .updates import UpdateRecord

__all__ = [
    "BATCH",
    "FORMAT_VERSION",
    "MANIFEST_NAME",
    "BandsRecord",
    "BoundingRecord",
    "Counts",
    "DenseRecord",
    "EarlierRecord",
    "ExchangeRecord",
    "FrameRecord",
    "InputFile",
    "InputRecord",
    "LambdaRecord",
    "LayoutRecord",
    "Manifest",
    "OutputRecord",
    "PartitionRecord",
    "PlanRecord",
    "ProgramRecord",
    "RunManifest",
    "ShardsRecord",
    "StageRecord",
    "StreamErrorRecord",
    "StreamRecord",
    "TableRecord",
    "TracksRecord",
    "UpdateRecord",
    "VerticesRecord",
    "WeightRecord",
    "WhereRecord",
    "folders_in_use",
    "is_exact",
    "is_result",
    "next_track",
    "read_manifest",
    "run_of",
    "versions",
    "write_manifest",
]
