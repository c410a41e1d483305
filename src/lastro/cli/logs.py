"""The log of a service: JSON lines on standard error, ours and the libraries', without anybody's data."""

import contextlib
import logging
import os
import sys

import asyncpg
import structlog
from structlog.typing import EventDict, Processor


def set_up_logging() -> None:
    """Log JSON lines to standard error; LASTRO_LOG_LEVEL chooses how much."""
    level = getattr(logging, os.environ.get("LASTRO_LOG_LEVEL", "INFO").upper(), logging.INFO)
    shared: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _without_row_values,
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, *shared, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=_Lines,
    )
    _set_up_library_logging(shared)


class _Lines:
    """Standard error, which may stand on a full disk: then a line is lost, but no request and no loop."""

    def __init__(self, *_: object) -> None:
        self._out = sys.stderr

    def msg(self, line: str) -> None:
        """Write one line, if there is room for it."""
        with contextlib.suppress(OSError):
            self._out.write(f"{line}\n")
            self._out.flush()

    debug = info = warning = error = critical = msg


def _set_up_library_logging(shared: list[Processor]) -> None:
    """Write what libraries warn of in the same form; never their details, which may hold what they carry."""
    handler = logging.StreamHandler(sys.stderr)
    final: list[Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.JSONRenderer(),
    ]
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=final, keep_exc_info=False)
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


def _without_row_values(_: object, __: str, event: EventDict) -> EventDict:
    """Leave out the values of rows that PostgreSQL quotes in its errors: they may be somebody's document."""
    given = event.get("exc_info")
    error = given if isinstance(given, BaseException) else sys.exc_info()[1] if given else None
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, asyncpg.PostgresError):
            error.detail = None
        error = error.__cause__ or error.__context__
    return event
