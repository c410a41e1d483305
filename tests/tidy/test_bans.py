"""What is absent on purpose; each ban names what to use instead."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.tidy.sources import ROOT, code_lines, sources, sql_strings

# `checks` are proofs: a statement for each thing that must not be. The inbox is a read like the statement.
SQL_MODULES = re.compile(
    r"(\.|_)queries$|\.checks?(_\w+)?$|^lastro\.(ledger\.(statement|proof)|outbox\.inbox|store\.\w+)$"
)


TEXTS = {".py", ".sql", ".md", ".toml", ".html", ".css", ".js"}


class Ban(NamedTuple):
    """A pattern, the modules that may use it all the same and why, and what the others use."""

    pattern: str
    instead: str
    allowed: tuple[str, ...] = ()


CODE_BANS = {
    "the clock": Ban(
        r"\bdatetime\.(now|utcnow|today)\(|\bdate\.today\(|\btime\.time\(",
        "services.clock.now() for business time, Clock.real() for leases and time-outs",
        # The client runs at the client's, where no clock of ours is.
        ("lastro.kit.clock", "lastro.client.requests", "lastro.client.webhooks"),
    ),
    "bare errors": Ban(r"except\s*:", "name the errors that this place can handle"),
    "swallowed errors": Ban(r"suppress\((Base)?Exception\)", "suppress the errors that are expected by name"),
    "unfinished work": Ban(r"\b(TODO|FIXME|XXX|HACK)\b", "finish it, or open an issue"),
    "money as float": Ban(r"_cents\w*\s*:\s*(float|Decimal)|float\(\w*cents", "integers of cents"),
    "local assertions": Ban(r"^\s*assert\s", "raise an error that says what is wrong; -O removes assertions"),
    "print": Ban(r"^\s*print\(", "structlog, or click.echo on the command line"),
}

SQL_BANS = {
    "the database's clock": Ban(
        r"\b(now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday)\(\)|\bCURRENT_(TIMESTAMP|TIME|DATE)\b|\bLOCALTIME",
        "an instant from the application as a parameter",
    ),
    "changes of what is final": Ban(
        r"\b(UPDATE|DELETE\s+FROM|TRUNCATE(\s+TABLE)?)\s+(ONLY\s+)?(entries|audit)\b",
        "a new movement, or a new row of the trail: nothing ever changes these",
    ),
    "notifications": Ban(r"\b(NOTIFY|LISTEN)\b", "services.wakes inside a process, a poll across processes"),
    "advisory locks": Ban(r"pg_(try_)?advisory", "the account's row: lock_balances"),
    "queues by lock": Ban(
        r"SKIP\s+LOCKED", "a compare-and-set of the lease: store/work.py", ("lastro.store.lane_faults",)
    ),
    "savepoints": Ban(r"\bSAVEPOINT\b", "decide before you apply; the lane bisects what fails"),
    "merge": Ban(r"^\s*MERGE\b", "INSERT ... ON CONFLICT"),
    "sequences": Ban(r"\bnextval\(|\bgen_random_uuid\(", "kit/ids: ids are drawn before the transaction"),
    "pages by offset": Ban(r"\bOFFSET\s", "a keyset: WHERE id < $1 ORDER BY id DESC LIMIT $2"),
}

MIGRATION_BANS = {
    **SQL_BANS,
    "triggers and functions": Ban(
        r"\b(TRIGGER|FUNCTION|PROCEDURE|EXTENSION|RULE)\b", "plain tables; rules live in decide"
    ),
    "generated ids": Ban(r"\b(big)?serial\b|\bGENERATED\b|\bIDENTITY\b", "ids from kit/ids"),
    "foreign keys": Ban(r"\bREFERENCES\b", "lastro check proves what they would"),
    "money as float": Ban(r"_cents\s+(?!bigint)\w+|\b(real|float\d?|money)\b\s*(NOT|,|$)", "bigint of cents"),
    "defaults": Ban(r"\bDEFAULT\s+now", "an instant from the application"),
    "time without zone": Ban(r"\btimestamp\b(?!tz)", "timestamptz"),
}

EVERYWHERE_BANS = {
    "paths of one machine": Ban(
        r"(?<![\w.:/])/(work|home|root|Users)/\w", "a path given by the caller, or a temporary one"
    ),
    "unfinished work": Ban(r"\b(TODO|FIXME)\b", "finish it, or open an issue"),
}


def found(ban: Ban, name: str, shown: str, lines: Iterable[tuple[int, str]]) -> list[str]:
    if name in ban.allowed:
        return []
    pattern = re.compile(
        ban.pattern, re.MULTILINE | re.IGNORECASE if ban in SQL_BANS.values() else re.MULTILINE
    )
    return [f"{shown}:{line}" for line, text in lines if pattern.search(text)]


@pytest.mark.parametrize("name", CODE_BANS)
def test_code_does_without(name):
    ban = CODE_BANS[name]
    hits = [hit for source in sources() for hit in found(ban, source.name, source.shown, code_lines(source))]
    assert hits == [], f"use {ban.instead}"


@pytest.mark.parametrize("name", SQL_BANS)
def test_sql_does_without(name):
    ban = SQL_BANS[name]
    hits = [hit for source in sources() for hit in found(ban, source.name, source.shown, sql_strings(source))]
    assert hits == [], f"use {ban.instead}"


@pytest.mark.parametrize("name", MIGRATION_BANS)
def test_migrations_do_without(name):
    ban = MIGRATION_BANS[name]
    hits = []
    for path in sorted((ROOT / "src/lastro/store/migrations").glob("*.sql")):
        lines = ((n, line.partition("--")[0]) for n, line in enumerate(path.read_text().splitlines(), 1))
        hits += found(ban, path.name, path.name, lines)
    assert hits == [], f"use {ban.instead}"


@pytest.mark.parametrize("name", EVERYWHERE_BANS)
def test_nothing_in_the_repository_has(name):
    ban = EVERYWHERE_BANS[name]
    hits = []
    for path in texts():
        lines = enumerate(path.read_text("utf-8").splitlines(), 1)
        hits += found(ban, path.name, str(path.relative_to(ROOT)), lines)
    assert hits == [], f"use {ban.instead}"


def texts() -> Iterator[Path]:
    """Every text that we write, but for this file, which quotes what it bans."""
    for folder in ("src", "tests", "docs", "bench", "scripts"):
        for path in sorted((ROOT / folder).rglob("*")):
            hidden = any(part.startswith(".") for part in path.relative_to(ROOT).parts)
            if path.suffix in TEXTS and not hidden and path != Path(__file__):
                yield path


def test_sql_stands_only_where_sql_belongs():
    """In `queries`, beside the typed function that runs it; in the ledger's reads and proofs; in `store`."""
    stray = [
        f"{source.shown}:{line}"
        for source in sources()
        if not SQL_MODULES.search(source.name)
        for line, _ in sql_strings(source)
    ]
    assert stray == [], "move the statement to the feature's queries module"


def test_no_error_is_caught_and_forgotten():
    """Whoever catches everything says something or does something about it."""
    forgotten = [
        f"{source.shown}:{node.lineno}"
        for source in sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler)
        and isinstance(node.type, ast.Name)
        and node.type.id in {"Exception", "BaseException"}
        and all(isinstance(part, ast.Pass | ast.Continue) for part in node.body)
    ]
    assert forgotten == [], "log it, or name the errors that are expected"


@pytest.mark.parametrize(
    ("bans", "name", "bad"),
    [
        (CODE_BANS, "the clock", "at = datetime.now(UTC)"),
        (CODE_BANS, "money as float", "amount_cents: float"),
        (SQL_BANS, "the database's clock", "SELECT now()"),
        (SQL_BANS, "changes of what is final", "DELETE FROM entries"),
        (SQL_BANS, "changes of what is final", "UPDATE audit SET actor = $1"),
        (SQL_BANS, "queues by lock", "SELECT 1 FOR UPDATE SKIP LOCKED"),
        (MIGRATION_BANS, "money as float", "amount_cents double precision NOT NULL"),
        (EVERYWHERE_BANS, "paths of one machine", "open('/home/somebody/file')"),
    ],
)
def test_the_bans_bite(bans, name, bad):
    assert found(bans[name], "somewhere", "somewhere", iter([(1, bad)])) == ["somewhere:1"]
