"""The documents tell the truth: every block of code runs, in order, against a fresh service.

The words after the language of a fence say how a block is run:

    ```sh              in the document's shell: one bash, stopping at the first failure
    ```sh background   the same, left running: what a person starts in another terminal
    ```python          in the document's Python: one interpreter
    ```python file=x   written to the file x
    ```text prints     every line of it must appear in what the blocks printed since the last one ran
    ```text            not run: other programs' output, or what needs another machine
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.service import Service, free_port

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "tutorial").glob("*.md")),
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
]
RUNBOOK = sorted((ROOT / "docs" / "runbook").glob("*.md"))
KNOWN = re.compile(r"sh( background)?|python( file=[\w.]+)?|text( prints)?")
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Ports that the documents name; each run has its own in their place.
PORTS = (8000, 8001, 3000)
BLOCK_TIMEOUT_S = 120
PRINT_TIMEOUT_S = 30
MARK = "-- end of block --"

PYTHON = f"""
import json, sys, traceback
names = {{"__name__": "__main__"}}
for line in sys.stdin:
    failed = 0
    try:
        exec(compile(json.loads(line), "<block>", "exec"), names)
    except BaseException:
        traceback.print_exc()
        failed = 1
    sys.stderr.flush()
    print("{MARK}", failed, flush=True)
"""


class Block(NamedTuple):
    kind: str
    text: str
    line: int


def blocks_of(text: str) -> list[Block]:
    return [
        Block(found[1].strip(), found[2], text.count("\n", 0, found.start()) + 1)
        for found in FENCE.finditer(text)
    ]


class Session:
    """One shell and one interpreter in a directory that looks like a checkout."""

    def __init__(self, folder: Path, ports: dict[int, int]) -> None:
        self.folder, self.ports = folder, ports
        self.out = folder / "output.log"
        self.out.touch()
        self.seen_from = 0
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LASTRO_")}
        environment.update(HOME=str(folder), PYTHONUNBUFFERED="1", COLUMNS="200")
        self.processes = {
            "sh": self._start(["bash", "--noprofile", "--norc"], environment),
            "python": self._start([str(folder / ".venv/bin/python"), "-c", PYTHON], environment),
        }
        self._send("sh", "set -euo pipefail\n")

    def _start(self, command, environment):
        with self.out.open("ab") as out:
            return subprocess.Popen(
                command, cwd=self.folder, env=environment, stdin=subprocess.PIPE, stdout=out, stderr=out,
                start_new_session=True,
            )  # fmt: skip

    def _send(self, name, text):
        stdin = self.processes[name].stdin
        stdin.write(text.encode())
        stdin.flush()

    def printed(self) -> str:
        with self.out.open("rb") as out:
            out.seek(self.seen_from)
            return out.read().decode("utf-8", "replace")

    def run(self, block: Block) -> None:
        text = re.sub(
            rf"\b({'|'.join(map(str, self.ports))})\b",
            lambda found: str(self.ports[int(found[1])]),
            block.text,
        )
        if block.kind == "text prints":
            self._expect(text)
        elif block.kind.startswith("python file="):
            (self.folder / block.kind.partition("=")[2]).write_text(text)
        elif block.kind != "text":
            self.seen_from = self.out.stat().st_size
            self._execute(block.kind, text)

    def _execute(self, kind: str, text: str) -> None:
        if kind == "python":
            self._send("python", json.dumps(text) + "\n")
            self._finish("python")
            return
        if kind == "sh background":
            self._send("sh", f"(\n{text}\n) &\n")
            self._await(self.printed, PRINT_TIMEOUT_S, "it never said that it is ready")
            return
        self._send("sh", f"{text}\necho '{MARK}' 0\n")
        self._finish("sh")

    def _finish(self, name: str) -> None:
        def ended():
            return f"{MARK} " in self.printed() or self.processes[name].poll() is not None

        self._await(ended, BLOCK_TIMEOUT_S, "it never ended")
        assert f"{MARK} 0" in self.printed(), f"it failed:\n{self.printed()}"

    def _expect(self, text: str) -> None:
        for line in filter(None, map(str.strip, text.splitlines())):
            self._await(
                lambda line=line: line in self.printed(), PRINT_TIMEOUT_S, f"it never printed {line!r}"
            )

    def _await(self, ready, timeout_s: float, words: str) -> None:
        until = time.monotonic() + timeout_s
        while not ready():
            assert time.monotonic() < until, f"{words}; it printed:\n{self.printed()}"
            time.sleep(0.05)

    def close(self) -> None:
        """End both, and what they left running in the background."""
        for process in self.processes.values():
            for sign in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, sign)
                except ProcessLookupError:
                    break
                if sign == signal.SIGTERM:
                    time.sleep(0.5)
            process.wait()
            process.stdin.close()


@pytest.fixture
def session(tmp_path):
    """A directory as `make run` leaves it: the virtual environment, the data directory, a running service."""
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    # The user that runs PostgreSQL must be able to enter; pytest's own directories are closed to it.
    data_dir = tmp_path / ".lastro"
    service = Service(data_dir=_made(data_dir)).start()
    ports = {port: free_port() for port in PORTS[1:]}
    made = Session(tmp_path, {PORTS[0]: service.port, **ports})
    yield made
    made.close()
    service.destroy()


def _made(path: Path) -> Path:
    path.mkdir()
    return path


def _is_make(block: Block) -> bool:
    """Tell whether a block only starts what this test has started itself: `make run`, `make test`."""
    return all(line.startswith("make ") for line in block.text.splitlines() if line.strip())


@pytest.mark.skipif(
    shutil.which("bash") is None or shutil.which("curl") is None, reason="needs bash and curl"
)
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_the_document_runs(path, session):
    ran = 0
    for block in blocks_of(path.read_text("utf-8")):
        if _is_make(block):
            continue
        try:
            session.run(block)
        except AssertionError as error:
            pytest.fail(f"{path.relative_to(ROOT)}:{block.line} ({block.kind}): {error}", pytrace=False)
        ran += block.kind.startswith(("sh", "python"))
    assert ran, "a document without a block that runs proves nothing"


@pytest.mark.skipif(
    shutil.which("bash") is None or shutil.which("curl") is None, reason="needs bash and curl"
)
def test_the_runbook_runs(session):
    """Its pages are short and need nothing of each other: one service for all."""
    for path in RUNBOOK:
        for block in blocks_of(path.read_text("utf-8")):
            try:
                session.run(block)
            except AssertionError as error:
                pytest.fail(f"{path.relative_to(ROOT)}:{block.line} ({block.kind}): {error}", pytrace=False)


@pytest.mark.parametrize("path", [*DOCUMENTS, *RUNBOOK], ids=lambda path: path.name)
def test_every_fence_says_how_it_is_run(path):
    text = path.read_text("utf-8")
    unknown = [(block.line, block.kind) for block in blocks_of(text) if not KNOWN.fullmatch(block.kind)]
    assert unknown == []
    assert text.count("```") == 2 * len(blocks_of(text)), "a fence is open, or indented"


def _run_all(session: Session, blocks: list[Block]) -> None:
    for block in blocks:
        session.run(block)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("```sh\nfalse\n```\n", "it failed"),
        ("```sh\ncat /no/such/file | cat\n```\n", "it failed"),
        ("```sh\nX=1\n```\n```sh\necho $X $Y\n```\n", "unbound variable"),
        ("```python\nx = 1\n```\n```python\nassert x == 2\n```\n", "AssertionError"),
        ("```python file=a.py\nraise SystemExit(3)\n```\n```sh\npython3 a.py\n```\n", "it failed"),
        ("```sh\necho one\n```\n```text prints\ntwo\n```\n", "it never printed 'two'"),
    ],
)
def test_a_document_that_lies_is_found_out(document, words, tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PRINT_TIMEOUT_S", 0.3)
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    session = Session(tmp_path, dict.fromkeys(PORTS, 1))
    try:
        with pytest.raises(AssertionError, match=words):
            _run_all(session, blocks_of(document))
    finally:
        session.close()


LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")


def test_links_between_documents_lead_somewhere():
    broken = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for found in LINK.finditer(path.read_text("utf-8")):
            if "://" not in found[1] and not (path.parent / found[1]).exists():
                broken.append(f"{path.relative_to(ROOT)}: {found[1]}")
    assert broken == []
