"""The whole benchmark: `python -m bench.run`, or `--quick` for a look in under three minutes.

Everything runs on this machine and loopback, on databases that are made for it and removed afterwards.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any

from bench import report
from bench.charges import charge_rows
from bench.children import BenchError, end_all, guard
from bench.events import event_row
from bench.reads import History, growth_rows, mixed_rows
from bench.report import Row
from bench.scale import FULL, QUICK, Scale
from bench.service import Service, tidy_environment
from bench.standing import memory_notes, start_rows
from bench.writes import Writes

PARTS = ("start", "writes", "reads", "mixed", "charges", "events", "memory")


class Bench:
    """One run: the rows so far, what else was noted, and every ledger that must still prove right."""

    def __init__(self, scale: Scale, parts: set[str]) -> None:
        self.scale = scale
        self.parts = parts
        self.rows: list[Row] = []
        self.notes: dict[str, Any] = {"check": {}}
        self.services: list[Service] = []

    def add(self, rows: list[Row]) -> None:
        """Keep rows and print them as they come."""
        for row in rows:
            self.rows.append(row)
            report.print_row(row)
            sys.stdout.flush()

    def run(self) -> None:
        """Measure part after part; each part leaves no service running but its own."""
        report.print_head()
        if "start" in self.parts:
            self.add(start_rows(self.scale))
        if self.parts & {"writes", "charges", "memory"}:
            self._on("writes", Service(), self._write_parts)
        if self.parts & {"reads", "mixed"}:
            self._read_parts()
        if "events" in self.parts:
            row, service = event_row(self.scale)
            self.add([row])
            self._finish("events", service)

    def _on(self, name: str, service: Service, measure: Callable[[Service], None]) -> None:
        try:
            service.start()
            measure(service)
        except BaseException:
            service.destroy()
            raise
        self._finish(name, service)

    def _write_parts(self, service: Service) -> None:
        start_mib = service.resident_mib()
        accounts = asyncio.run(service.open_accounts(self.scale.accounts))
        if "writes" in self.parts:
            writes = Writes(service, accounts, self.scale)
            self.add(writes.run())
            self.notes["writes"] = writes.notes
        if "charges" in self.parts:
            self.add(charge_rows(service, accounts[0], self.scale))
        if "memory" in self.parts:
            self.notes["memory"] = memory_notes(service, accounts, self.scale, start_mib)

    def _read_parts(self) -> None:
        small, large = History(self.scale.small_rows), History(self.scale.large_rows)
        try:
            small.open()
            if "reads" in self.parts:
                large.open()
                self.add(growth_rows(small, large, self.scale))
                self._finish(f"reads, {large.rows:,} rows", large.service)
            if "mixed" in self.parts:
                self.add(mixed_rows(small, self.scale))
            self._finish(f"reads, {small.rows:,} rows", small.service)
        finally:
            small.service.destroy()
            large.service.destroy()

    def _finish(self, name: str, service: Service) -> None:
        """Prove the ledger that was worked on, then remove it."""
        try:
            found = service.check()
        finally:
            service.destroy()
        self.notes["check"][name] = {key: found[key] for key in ("ok", "accounts", "movements", "entries")}
        if not found["ok"]:
            self.notes["check"][name]["problems"] = found["problems"][:5]

    @property
    def ok(self) -> bool:
        """Tell whether every ledger holds; a missed figure is shown, not an error."""
        return all(found["ok"] for found in self.notes["check"].values())


def _print_notes(notes: dict[str, Any], took_s: float) -> None:
    print()
    if memory := notes.get("memory"):
        print(
            f"memory: {memory['after_start_mib']} MiB after start, {memory['after_rest_mib']} MiB after "
            f"{memory['payouts']:,} payouts and a rest"
        )
    for name, found in notes["check"].items():
        said = "everything holds" if found["ok"] else f"PROBLEMS: {found.get('problems')}"
        print(f"lastro check ({name}): {said} ({found['movements']:,} movements)")
    print(f"took {took_s:.0f} s; written to {report.RESULTS}")


def main() -> None:
    """Run what was asked for, print the table, write the results."""
    asked = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    asked.add_argument("--quick", action="store_true", help="fewer, shorter rounds on smaller data")
    asked.add_argument("--only", choices=PARTS, action="append", help="measure this part alone (repeatable)")
    given = asked.parse_args()
    guard()
    tidy_environment()
    bench = Bench(QUICK if given.quick else FULL, set(given.only or PARTS))
    began = time.perf_counter()
    try:
        bench.run()
    except KeyboardInterrupt:
        sys.exit("stopped")
    except BenchError as error:
        sys.exit(f"bench: {error}")
    finally:
        end_all()
    took_s = time.perf_counter() - began
    report.write(bench.rows, quick=given.quick, notes={**bench.notes, "took_s": round(took_s)})
    _print_notes(bench.notes, took_s)
    sys.exit(0 if bench.ok else 1)


if __name__ == "__main__":
    main()
