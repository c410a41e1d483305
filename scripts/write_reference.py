"""Write the generated pages of docs/reference: errors, events, settings.

Usage: .venv/bin/python scripts/write_reference.py   (`make docs`); a test holds the pages to the code.
"""

import sys
from pathlib import Path

import msgspec

from lastro.kit.errors import catalogue
from lastro.outbox.model import DATA_OF
from lastro.startup import ENVIRONMENT

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"


def errors_page() -> str:
    """Every error code, its status and its words."""
    rows = [f"| {e.status} | `{e.code}` | {e.message} |" for e in catalogue()]
    return "\n".join(
        [
            "# Errors",
            "",
            "Every error has one shape, on every path and status:",
            "",
            '`{"error": {"code", "message", "requestId", "param"?, "details"?}}`',
            "",
            (
                "`code` is stable: programs may rely on it. "
                "`param` names the offending field, header or parameter."
            ),
            "A 4xx that a rule of money decided (404, 409 `external_ref_conflict`, 422) is stored under its",
            "Idempotency-Key and repeated byte for byte; 400, 401, 403, 429 and 5xx never are.",
            "",
            "| status | code | meaning |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def events_page() -> str:
    """Every event and exactly its data fields."""
    lines = [
        "# Events",
        "",
        (
            "Body: `{event, data, eventId}`; `eventId` is equal on every attempt and endpoint. "
            "All fields are strings"
        ),
        "unless they may be null.",
        "",
    ]
    for name, data in DATA_OF.items():
        fields = msgspec.structs.fields(data)
        shown = ", ".join(
            f"`{f.encode_name}`" + (" (or null)" if "None" in str(f.type) else "") for f in fields
        )
        lines += [f"## `{name}`", "", (data.__doc__ or "").strip(), "", shown, ""]
    return "\n".join(lines)


def settings_page() -> str:
    """Every setting of the environment."""
    rows = [
        f"| `{name}` | {default} | {meaning} |" for name, (default, meaning) in sorted(ENVIRONMENT.items())
    ]
    return "\n".join(
        [
            "# Settings",
            "",
            "Read once at start. Command-line options (`lastro serve --help`) win over the environment.",
            "",
            "| variable | default | meaning |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


PAGES = {"errors.md": errors_page, "events.md": events_page, "settings.md": settings_page}


def main() -> int:
    """Write the pages, or with --check only say which are out of date."""
    stale = []
    for name, write in PAGES.items():
        path = FOLDER / name
        if not path.exists() or path.read_text("utf-8") != write():
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(write(), "utf-8")
    if stale:
        print(("out of date: " if "--check" in sys.argv else "written: ") + ", ".join(stale))
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
