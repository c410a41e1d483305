"""A PostgreSQL for the test suite, started by the very code that `lastro serve` uses."""

import atexit
import contextlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from lastro.store import embedded
from lastro.store.pg_place import locate


def start_throwaway() -> tuple[str, Callable[[], None]]:
    """Start a cluster in a temporary directory; return its URL and the call that stops and removes it."""
    home = Path(tempfile.mkdtemp(prefix="lastro-test-"))
    home.chmod(0o755)  # as root, PostgreSQL runs as another user, who must be able to enter
    try:
        cluster = embedded.start(home / "data")
    except BaseException:
        remove(home / "data")
        shutil.rmtree(home, ignore_errors=True)
        raise

    def stop() -> None:
        atexit.unregister(stop)
        embedded.stop(cluster)
        remove(home / "data")
        shutil.rmtree(home, ignore_errors=True)

    atexit.register(stop)
    return cluster.url, stop


def remove(data_dir: Path) -> None:
    """Remove a data directory and its cluster, wherever it lives."""
    with contextlib.suppress(embedded.EmbeddedError):
        base = locate(data_dir.resolve())
        if base is not None:
            shutil.rmtree(base, ignore_errors=True)
    shutil.rmtree(data_dir, ignore_errors=True)
