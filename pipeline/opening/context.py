"""The context of one call of `mine`: its settings and output, and the run that it starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from ...tasks.inputs.sources import Source
from ...tasks.storage.folders import folder_at
from ..events import Events
from ..nightly.delta import DeltaTables
from ..nightly.night import Night, result_before
from ..output.staging import Staging
from ..results.result import Result
from ..results.series import PreviousResult
from ..settings.models import Settings
from .input import RunInput

if TYPE_CHECKING:  # a call that computes nothing loads neither Dask nor the kernels
    from ...tasks.attributes import AttributeSource
    from ...tasks.device import MemorySpace
    from ..cluster.engine import Engine
    from ..plan.plan import Plan
    from ..stages.kernels import KernelLoading


@dataclass(frozen=True)
class Call:
    """One call of `mine`: its arguments, and the output that it has locked."""

    settings: Settings
    events: Events
    input: RunInput
    staging: Staging
    night: Night | None
    """The night of a series that the result belongs to, if any."""
    tables: DeltaTables | None
    """The Delta tables that the call also writes, if any."""
    earlier: list[Result] = field(default_factory=list)
    """The results that the new one starts from, or takes tracks from: they must not change until it is published."""

    def reads(self, result: Result | None) -> None:
        """Note an earlier result. The one that this call replaces itself need not be noted, since it is locked."""
        if result is not None and not result.place.is_same(folder_at(self.staging.out)):
            self.earlier.append(result)

    def refuse_replaced(self) -> None:
        """Raises InputError if another run has replaced an earlier result since it was opened."""
        for result in self.earlier:
            if result.version is not None:
                result.version.refuse_replaced()

    @contextmanager
    def explaining_errors(self) -> Iterator[None]:
        """Within the context an error while an earlier result was replaced is the InputError that says so: rows of two
        results do not fit together.
        """
        try:
            yield
        except Exception:
            self.refuse_replaced()
            raise

    @cached_property
    def before(self) -> PreviousResult | None:
        """The result whose tracks the call continues, as `result_before` finds it."""
        return result_before(self.settings, self.night)


@dataclass(frozen=True)
class RunContext:
    """A planned run on a cluster."""

    call: Call
    source: Source
    vertices: AttributeSource | None
    """Attributes of vertices that are joined to the result, if any."""
    engine: Engine
    plan: Plan
    loading: KernelLoading
    keeps_state: bool = False
    """Whether the result gets a state that the next night can start from."""

    @property
    def settings(self) -> Settings:
        """The settings of the call."""
        return self.call.settings

    @property
    def events(self) -> Events:
        """The events of the call."""
        return self.call.events

    @property
    def space(self) -> MemorySpace:
        """The memory of blocks and buckets."""
        from ...tasks.device import MemorySpace

        return MemorySpace.DEVICE if self.plan.ingest_on_device else MemorySpace.HOST

    def finish_loading(self, stage: str) -> None:
        """Wait for the kernels that `stage` calls, "number" or "triangulate", if they are being loaded."""
        self.loading.finish(self.engine, self.events, stage)
