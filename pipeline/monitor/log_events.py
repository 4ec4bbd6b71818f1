"""Log messages and warnings of libraries as events, so that stderr holds only JSON lines."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from ...tasks.storage.passwords import without_passwords
from .events import Events


class _Handler(logging.StreamHandler[TextIO]):
    """A StreamHandler, so that Dask silences it with its other stream handlers."""

    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        """Emit the record as the event `log`."""
        try:
            text = without_passwords(record.getMessage())
            self._events.emit("log", logger=record.name, level=record.levelname, message=text)
        except Exception:
            self.handleError(record)


@contextmanager
def logs_as_events(events: Events) -> Iterator[None]:
    """Within the block, loggers and warnings of this process emit events and write nowhere else.

    Each logger keeps its level. Other processes are not affected.
    """
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
