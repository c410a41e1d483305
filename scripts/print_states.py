"""Print the tables of states into docs/reference/states.md: `python scripts/print_states.py`."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from lastro.charges import model as charges
from lastro.payouts import model as payouts

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "states.md"

HEAD = """# States

Printed from the tables in `payouts/model.py` and `charges/model.py` by `scripts/print_states.py`; a test
holds this page to them. Rows are what happened outside, columns are where the record stands. Every pair is
decided: a step to another status, or a reading that leaves the record as it is.
"""

PAYOUTS = """
## Payouts

An intent begins as PENDING with amount and fee held: its movement is PENDING and the balance is reduced.
What a step does to the ledger stands in brackets: *keep* nothing, *post* the held movement, *reverse* it by a
credit of amount and fee, *new debit* of amount and fee (also below zero), *credit back* what came back.

"""

CHARGES = """
## Charges

A credit that does not fit its charge is booked all the same and told as `pix.in.received`.

"""


def main() -> None:
    """Write the page."""
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), "utf-8")
    print(PAGE)


def page() -> str:
    """Return the whole page."""
    paid_out = table(payouts.PayoutStatus, payouts.Fact, payouts.STEPS)
    charged = table(charges.ChargeStatus, charges.Fact, charges.STEPS)
    return HEAD + PAYOUTS + paid_out + CHARGES + charged


def table(statuses: type[StrEnum], facts: type[StrEnum], steps: Mapping[tuple[Any, Any], Any]) -> str:
    """Return one table: a row for each fact, a column for each status."""
    lines = [_row(["", *statuses]), _row(["---"] * (len(statuses) + 1))]
    lines += [_row([fact, *(_cell(steps[status, fact], status) for status in statuses)]) for fact in facts]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(step: Any, status: StrEnum) -> str:  # noqa: ANN401  a step of either table
    if isinstance(step, payouts.Step):
        to = "stays" if step.to == status else f"**{step.to}**"
        return f"{to} ({step.books}{', alarm' if step.alarm else ''})"
    if isinstance(step, charges.ChargeStatus):
        return "stays" if step == status else f"**{step}**"
    return str(step)


if __name__ == "__main__":
    main()
