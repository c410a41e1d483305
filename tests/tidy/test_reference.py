"""The generated reference pages tell what the code says."""

import re
import subprocess
import sys
from pathlib import Path

from lastro.startup import ENVIRONMENT

ROOT = Path(__file__).resolve().parents[2]


def test_generated_pages_are_current():
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "write_reference.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}: run `make docs`"


def test_every_setting_that_the_code_reads_is_listed():
    read = set()
    for path in (ROOT / "src").rglob("*.py"):
        read |= set(re.findall(r"LASTRO_[A-Z_]+", path.read_text()))
    assert read == set(ENVIRONMENT), read ^ set(ENVIRONMENT)
