"""Child processes: each is ended by its own pid when its block ends, also after Ctrl-C or a failure."""

import atexit
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
END_WITHIN_S = 30.0

_running: dict[int, "Child"] = {}
_tools: dict[int, "Tool"] = {}


class BenchError(Exception):
    """The benchmark cannot go on; the text says why."""


class Child:
    """One child process that will not outlive the benchmark."""

    def __init__(self, command: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> None:
        self.log = log
        with log.open("ab") as out:
            # A session of its own: Ctrl-C reaches us alone, and we end the children in order.
            self.process = subprocess.Popen(
                list(command),
                stdout=out,
                stderr=out,
                cwd=ROOT,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        _running[self.pid] = self

    @property
    def pid(self) -> int:
        """The process id, valid until `end` has returned."""
        return self.process.pid

    def check_alive(self) -> None:
        """Fail with the end of the log when the process is gone."""
        if self.process.poll() is not None:
            raise BenchError(f"{self.process.args!r} ended with {self.process.returncode}:\n{self.tail()}")

    def tail(self) -> str:
        """Return the last lines that the process wrote."""
        return self.log.read_text(errors="replace")[-4000:]

    def resident_kib(self) -> int:
        """Return the resident size of the process."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise BenchError("the kernel does not tell the resident size")

    def end(self) -> None:
        """Ask the process to stop, and stop it when it does not."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(END_WITHIN_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        _running.pop(self.pid, None)


class Tool:
    """A program that runs to its own end and prints what it found, such as a load generator."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            list(command),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
        _tools[self.process.pid] = self

    def finish(self, *, timeout_s: float) -> subprocess.CompletedProcess[str]:
        """Wait for the end, within a time, and return what was printed."""
        try:
            out, err = self.process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"{self.process.args!r} took longer than {timeout_s:.0f} s") from error
        finally:
            self.kill()
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, out, err)

    def kill(self) -> None:
        """End the program if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        _tools.pop(self.process.pid, None)


def run(
    command: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and return what it printed."""
    return Tool(command, env=env).finish(timeout_s=timeout_s)


def end_all() -> None:
    """End what is still running, the youngest first."""
    for tool in list(_tools.values()):
        tool.kill()
    for child in reversed(list(_running.values())):
        child.end()


def _on_signal(number: int, _: object) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


def guard() -> None:
    """Turn a termination into an orderly end, and make sure that nothing is left behind."""
    signal.signal(signal.SIGTERM, _on_signal)
    atexit.register(end_all)


def wait_until(probe: Any, *, timeout_s: float, every_s: float = 0.02, what: str) -> Any:
    """Call a probe until it returns something true."""
    until = time.monotonic() + timeout_s
    while not (found := probe()):
        if time.monotonic() > until:
            raise BenchError(f"it took longer than {timeout_s:.0f} s: {what}")
        time.sleep(every_s)
    return found
