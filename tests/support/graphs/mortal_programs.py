"""A program that kills its process. Workers import this module."""

from __future__ import annotations

import os
import signal
from typing import Any

from edgemill.tasks.programs import warm
from edgemill.tasks.programs.shipped.pagerank import PageRank


def die_in_a_superstep() -> None:
    """Kill the calling process in a superstep of the next PageRank."""
    forms = PageRank.forms

    def forms_that_die(self: PageRank, v: Any) -> Any:
        emit = forms(self, v)["emit"]

        def emit_or_die(v: Any) -> Any:
            if v.step == 7 and v.total != warm.VERTICES:  # not in the warm-up run
                os.kill(os.getpid(), signal.SIGKILL)
            return emit(v)

        return {**forms(self, v), "emit": emit_or_die}

    PageRank.forms = forms_that_die  # type: ignore[method-assign]
