"""Look for known holes: in what we install (pip-audit) and in how we write (bandit).

pip-audit ends well when it could ask about nothing at all, so its report is read here: a package that
no advisory service knows of was not looked at, and that is said. Ends with 1 when a hole was found;
with --strict also when the advisories could not be reached.
Usage: make audit, or make audit AUDIT=--strict
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
LOCK = "requirements/run.lock"
SERVICES = ("pypi", "osv")
TIMEOUT_S = 300


def ask(service: str) -> list[dict[str, Any]]:
    """Return what an advisory service says about each locked package; nothing when it is out of reach."""
    command = [str(BIN / "pip-audit"), "--requirement", LOCK, "--require-hashes", "--disable-pip"]
    command += ["--vulnerability-service", service, "--format", "json", "--progress-spinner", "off"]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        return []
    return found


def judge(packages: list[dict[str, Any]]) -> tuple[int, int, list[str]]:
    """Count packages that were looked at and that were not, and name the holes."""
    holes = [
        f"  {package['name']} {package['version']}: {hole['id']}, mended in {hole['fix_versions']}"
        for package in packages
        for hole in package.get("vulns", [])
    ]
    skipped = sum("skip_reason" in package for package in packages)
    return len(packages) - skipped, skipped, holes


def audit_packages() -> tuple[bool, bool]:
    """Tell whether the locked packages are without known holes, and whether anybody could be asked."""
    looked, skipped, holes = 0, 0, list[str]()
    for service in SERVICES:
        looked, skipped, holes = judge(ask(service))
        if looked:
            break
    if not looked:
        print(f"pip-audit: the advisories could not be reached. {LOCK} was NOT checked for known holes.")
        return True, False
    print(f"pip-audit: {len(holes)} known holes in {looked} packages of {LOCK}.", *holes, sep="\n")
    if skipped:
        print(f"pip-audit: {skipped} packages are unknown to the advisories and were NOT checked.")
    return not holes, not skipped


def audit_code() -> bool:
    """Tell whether bandit has nothing to say that pyproject.toml does not answer."""
    command = [str(BIN / "bandit"), "--recursive", "src", "--configfile", "pyproject.toml", "--quiet"]
    done = subprocess.run(command, cwd=ROOT, timeout=TIMEOUT_S, check=False)
    print(f"bandit: {'nothing unjudged in src.' if done.returncode == 0 else 'findings that nobody judged.'}")
    return done.returncode == 0


def main() -> int:
    """Run both, whatever the first says."""
    clean_packages, reached = audit_packages()
    clean_code = audit_code()
    if not (clean_packages and clean_code):
        return 1
    return 1 if "--strict" in sys.argv and not reached else 0


if __name__ == "__main__":
    sys.exit(main())
