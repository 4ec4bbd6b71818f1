"""What libraries log and warn of as events, so that a stream of JSON holds nothing else."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from ..tasks.passwords import without_passwords
from .telemetry import Events

__all__ = ["logs_as_events"]


class _Handler(logging.StreamHandler[TextIO]):
    """A handler of streams to Dask, so that what silences those silences it too."""

    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        """Tell of one record, as the event `log`."""
        try:
            text = without_passwords(record.getMessage())
            self._events.emit("log", logger=record.name, level=record.levelname, message=text)
        except Exception:
            self.handleError(record)


@contextmanager
def logs_as_events(events: Events) -> Iterator[None]:
    """Within it every logger of this process tells `events`, in place of what it writes to, and warnings do too.

    Each keeps its level, so Dask logs no more than it would. What other processes write is theirs.
    """
    import distributed  # noqa: F401 — gives its loggers their handlers

    known = logging.root.manager.loggerDict.values()
    loggers = [logging.root, *(logger for logger in known if isinstance(logger, logging.Logger) and logger.handlers)]
    before = [(logger, logger.handlers) for logger in loggers]
    for logger in loggers:
        logger.handlers = [_Handler(events)]
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        for logger, handlers in before:
            logger.handlers = handlers
