"""Imports point down, and what decides knows neither the database nor HTTP."""

import subprocess
import sys
from pathlib import Path

from tests.tidy.sources import ROOT, code_lines, sources


def test_imports_point_down():
    """The contracts stand in pyproject.toml, [tool.importlinter]; a new module must be given its layer."""
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_ledger_never_hears_of_payouts_or_charges():
    """It books movements; what they are for is the features' business."""
    said = [
        f"{source.shown}:{number}"
        for source in sources()
        if source.name.startswith("lastro.ledger")
        for number, line in code_lines(source)
        if "payout" in line.lower() or "charge" in line.lower()
    ]
    assert said == [], "say movement, posting, hold; or move the code to the feature"
