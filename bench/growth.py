"""Growth: the same reads and writes on ever longer histories and on more accounts, drawn as an SVG.

python -m bench.growth [--quick]
"""

import argparse
import asyncio
import json
import sys
from datetime import UTC, datetime
from typing import Any

from bench.children import ROOT, BenchError, end_all, guard
from bench.generate import generate
from bench.load import Plan, Request, load, median, payout_requests
from bench.reads import BALANCE, CHARGES, STATEMENT, SUMMARY
from bench.scale import FULL, QUICK, Scale
from bench.service import Account, Service, tidy_environment
from bench.svg import Panel, draw

PICTURE = ROOT / "docs" / "explanation" / "growth.svg"
RESULTS = ROOT / "bench" / "results" / "growth.json"
PATHS = {"statement page": STATEMENT, "balance": BALANCE, "charge list": CHARGES, "summary": SUMMARY}
SIZES = {False: (10_000, 100_000, 1_000_000), True: (1_000, 5_000, 20_000)}
ACCOUNTS = (1, 10, 1_000)
CONNECTIONS = 64


def _load(service: Service, requests: list[Request], connections: int, seconds: float) -> Any:
    plan = Plan(requests)
    try:
        result = load(service.port, plan, connections=connections, seconds=seconds)
    finally:
        plan.remove()
    if result.failed:
        raise BenchError(f"{result.failed} requests failed")
    return result


def _payouts(service: Service, accounts: list[Account], scale: Scale) -> float:
    """Return payouts a second, the median of the rounds."""
    _load(service, payout_requests(accounts), CONNECTIONS, scale.warm_s)
    found = []
    for _ in range(scale.rounds):
        asyncio.run(service.drain())
        found.append(_load(service, payout_requests(accounts), CONNECTIONS, scale.write_s).rate)
    asyncio.run(service.drain())
    return median(found)


def measure_sizes(service: Service, scale: Scale, sizes: tuple[int, ...]) -> dict[str, list[float]]:
    """Measure reads (ms, one connection) and writes (a second) at each length of history."""
    seen: dict[str, list[float]] = {name: [] for name in (*PATHS, "payouts")}
    for rows in sizes:
        account = asyncio.run(service.open_accounts(1, funded=False))[0]
        asyncio.run(generate(service.database_url, account.account_id, rows))
        for name, path in PATHS.items():
            request = [Request("GET", path, account.api_key)]
            _load(service, request, 1, 1)
            runs = [_load(service, request, 1, scale.read_s).p50_ms for _ in range(scale.rounds)]
            seen[name].append(round(median(runs), 3))
        asyncio.run(service.fund(account))
        seen["payouts"].append(round(_payouts(service, [account], scale)))
        print(
            f"{rows:>9,} rows: " + ", ".join(f"{name} {values[-1]:g}" for name, values in seen.items()),
            flush=True,
        )
    return seen


def measure_accounts(service: Service, scale: Scale) -> list[float]:
    """Measure payouts a second over more and more accounts."""
    found: list[float] = []
    for count in ACCOUNTS:
        accounts = asyncio.run(service.open_accounts(count))
        found.append(round(_payouts(service, accounts, scale)))
        print(f"{count:>9,} accounts: {found[-1]} payouts a second", flush=True)
    return found


def panels(sizes: tuple[int, ...], reads: dict[str, list[float]], by_accounts: list[float]) -> list[Panel]:
    """Put what was measured into charts."""
    rows = [f"{size:,}" for size in sizes]
    times = {name: reads[name] for name in PATHS}
    accounts = [f"{count:,}" for count in ACCOUNTS]
    return [
        Panel("Reads: median time by rows of the account", "ms", rows, times),
        Panel("Payouts by rows of the account", "/s", rows, {"one account": reads["payouts"]}),
        Panel("Payouts by number of accounts", "/s", accounts, {"64 connections": by_accounts}),
    ]


def run(scale: Scale) -> bool:
    """Measure on one throw-away service, draw, and prove its ledger."""
    sizes = SIZES[scale.quick]
    service = Service()
    try:
        service.start()
        reads = measure_sizes(service, scale, sizes)
        by_accounts = measure_accounts(service, scale)
        found = service.check()
    finally:
        service.destroy()
    shown = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"), "quick": scale.quick, "sizes": sizes,
        "reads_ms_and_payouts_per_second": reads, "accounts": ACCOUNTS,
        "payouts_per_second": by_accounts, "check_ok": found["ok"],
    }  # fmt: skip
    RESULTS.write_text(json.dumps(shown, indent=2) + "\n")
    # A quick look must not replace the picture of the documentation.
    picture = RESULTS.with_suffix(".svg") if scale.quick else PICTURE
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_text(draw(panels(sizes, reads, by_accounts)))
    said = "everything holds" if found["ok"] else f"PROBLEMS: {found['problems'][:5]}"
    print(f"lastro check: {said} ({found['movements']:,} movements); drawn to {picture}")
    return bool(found["ok"])


def main() -> None:
    """Measure and draw."""
    asked = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    asked.add_argument("--quick", action="store_true", help="small data, one round; draws beside the results")
    given = asked.parse_args()
    guard()
    tidy_environment()
    try:
        ok = run(QUICK if given.quick else FULL)
    except KeyboardInterrupt:
        sys.exit("stopped")
    except BenchError as error:
        sys.exit(f"bench: {error}")
    finally:
        end_all()
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
