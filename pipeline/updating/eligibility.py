"""Whether a run can start from an earlier result, and from which."""

from __future__ import annotations

from ...tasks.errors import EdgemillError, StoreLost
from ...tasks.ids.display import are_same, type_name
from ...tasks.inputs.sources import Source
from ...tasks.storage.folders import folder_at
from ..cluster.connecting.local import has_gpu_workers, host_memory_bytes
from ..messages.exits import message
from ..nightly.night import Night
from ..output.manifest import Manifest, versions
from ..results.result import Result
from ..settings.models import ClusterSettings, Settings
from ..stages.limits import FILL

EDGE_BYTES = 215
"""Memory of an update for each edge, in this process. Measured: up to 208 (actor-collaboration, cnr-2000)."""

PROGRAM_EDGE_BYTES = 80
"""Memory of vertex programs for each edge in addition. Measured: up to 70 (cnr-2000)."""

ARC_BYTES = 250
"""The same if they read directions or weights. Measured: up to 230 (cnr-2000, ten programs)."""


class NotUsable(Exception):
    """The earlier result cannot be used; the message says why."""


def earlier_result(settings: Settings, night: Night | None) -> Result | None:
    """The result to start from: the one that the settings name, or the newest earlier night; None if there is none.

    Raises UsageError or InputError if the named result cannot be opened, NotUsable if that of the night cannot, and
    StoreLost.
    """
    own = settings.nightly
    if own.previous is not None:
        return Result(folder_at(own.previous, settings.output.storage_options))
    previous = night.previous() if night is not None and own.incremental != "never" else None
    if previous is None:
        return None
    try:
        return Result(previous.place)
    except StoreLost:
        raise
    except EdgemillError as error:
        raise NotUsable(message(error)) from error


def obstacle(settings: Settings, base: Result, source: Source, has_client: bool) -> str | None:
    """Why a run must compute everything, though it could start from `base`; None if nothing is in the way."""
    return _of_base(base.manifest, source) or _of_settings(settings, base, has_client)


def keeps_state(settings: Settings, has_client: bool, needs_one: bool = False) -> bool:
    """Whether a full run keeps a state: a next night is expected, or `needs_one`, and nights on these workers can start
    from a state.
    """
    is_expected = settings.nightly.may_start_from_earlier or needs_one
    return is_expected and not settings.input.two_sided and _of_workers(settings.cluster, has_client) is None


def _of_base(then: Manifest, source: Source) -> str | None:
    made, here = then.versions.get("edgemill"), versions()["edgemill"]
    if made != here:
        return f"the earlier result was made by edgemill {made}, and this is {here}"
    if source.two_sided or then.measure != source.measure:
        return (
            f"λ counts {source.measure}, which is found from nothing"
            if source.two_sided
            else ("λ of the earlier result counts butterflies")
        )
    if not then.exact:
        return "the earlier result does not have the λ of every edge"
    if then.dense is None or then.tracks is None:
        return "the earlier result has no dense groups"
    if not are_same(then.input.id_type, type_name(source.id_type)):
        return f"ids of the earlier result are {then.input.id_type}, and are {type_name(source.id_type)} now"
    before, now = (then.input.source_column, then.input.target_column), (source.source_column, source.target_column)
    if before != now:
        return f"columns of the earlier result are {' and '.join(before)}, and are {' and '.join(now)} now"
    if len(then.partitions) > 1 or then.bounding.shards is not None:
        return "the earlier result was computed in several partitions"
    return None


def _of_settings(settings: Settings, base: Result, has_client: bool) -> str | None:
    cluster, bounding = settings.cluster, settings.bounding
    programs = settings.programs.vertex_programs
    if len(programs) == len(settings.programs.run):
        return "λ is not among the programs"
    if others := [name for name, own in settings.requested_programs.items() if not own.runs_in_updates]:
        return f"{', '.join(others)} runs on workers"
    if programs and (settings.programs.max_supersteps or settings.programs.max_seconds):
        return "programs has a limit of its own"
    if settings.input.vertices is not None:
        return "attributes of vertices are joined again"
    if settings.partitioning.count not in ("auto", 1):
        return "partitioning.count asks for several partitions"
    if bounding.method not in ("auto", "peel") or bounding.max_exchanges or bounding.max_seconds:
        return "bounding has a method or a limit of its own"
    if (reason := _of_workers(cluster, has_client)) is not None:
        return reason
    edges, room = base.manifest.counts.edges, FILL * (cluster.memory_limit_bytes or host_memory_bytes())
    reads_arcs = settings.input.directed or settings.input.weight_column is not None
    of_programs = 0 if not programs else ARC_BYTES if reads_arcs else PROGRAM_EDGE_BYTES
    if edges * (EDGE_BYTES + of_programs) > room:
        return f"an update of {edges:,} edges needs more than the {room / 2**30:.1f} GiB that may be used"
    return None


def _of_workers(cluster: ClusterSettings, has_client: bool) -> str | None:
    if has_client or not cluster.is_started_here or (cluster.workers or 1) > 1:
        return "several workers compute"
    if cluster.device == "gpu" or (cluster.device == "auto" and has_gpu_workers(cluster)):
        return "a GPU computes, for which a full run is less work"
    return None
