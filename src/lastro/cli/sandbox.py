"""`lastro sandbox`: be the other bank, and move time. A live service answers 404 to all of it."""

import re
from pathlib import Path
from typing import Any

import click

from lastro.cli.service import DATA_DIR, Service, find_admin, in_words, with_service
from lastro.cli.show import show
from lastro.client import NotFound, calls_more

_DURATION = re.compile(r"(\d{1,9})(s|m|h|d)?")
_UNITS_S = {None: 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


@click.group()
def sandbox() -> None:
    """Be the other bank: pay, settle, reject, refund; move the clock; have the provider misbehave."""


@sandbox.command("pay")
@click.argument("charge_id")
@click.option("--amount-cents", type=click.IntRange(1), help="What the charge asks for when none is given.")
@click.option("--payer-name")
@click.option("--payer-document", help="A CPF or CNPJ.")
@click.option("--lost", is_flag=True, help="The notification gets lost: the service finds out by itself.")
@with_service
def pay(service: Service, charge_id: str, *, lost: bool, **fields: Any) -> None:  # noqa: ANN401
    """Pay a charge."""
    service.show(service.ask(calls_more.sandbox_pay(charge_id, notify=not lost, **fields)))


@sandbox.command("pix-in")
@click.argument("amount_cents", type=click.IntRange(1))
@click.option("--payer-name")
@click.option("--payer-document", help="A CPF or CNPJ.")
@with_service
def pix_in(service: Service, amount_cents: int, **fields: Any) -> None:  # noqa: ANN401
    """Send a Pix to the account without a charge."""
    account_id = service.client.account().id
    service.show(service.ask(calls_more.sandbox_pix_in(account_id, amount_cents, **fields)))


@sandbox.command("settle")
@click.argument("payout_id")
@with_service
def settle(service: Service, payout_id: str) -> None:
    """Settle an open payout."""
    service.show(service.ask(calls_more.sandbox_settle(payout_id)))


@sandbox.command("reject")
@click.argument("payout_id")
@click.option("--code", help="An SPI code of four characters; AB03 when none is given.")
@with_service
def reject(service: Service, payout_id: str, code: str | None) -> None:
    """Reject an open payout."""
    service.show(service.ask(calls_more.sandbox_reject(payout_id, code=code)))


@sandbox.command("cancel")
@click.argument("payout_id")
@with_service
def cancel(service: Service, payout_id: str) -> None:
    """Cancel an open payout at the provider."""
    service.show(service.ask(calls_more.sandbox_cancel(payout_id)))


@sandbox.command("refund")
@click.argument("record_id", metavar="CHARGE_ID|PAYOUT_ID")
@click.option("--amount-cents", type=click.IntRange(1), help="All that is left when none is given.")
@with_service
def refund(service: Service, record_id: str, amount_cents: int | None) -> None:
    """Have the provider send a paid charge or a settled payout back."""
    try:
        answer = service.ask(calls_more.sandbox_refund_charge(record_id, amount_cents=amount_cents))
    except NotFound:
        answer = service.ask(calls_more.sandbox_refund_payout(record_id, amount_cents=amount_cents))
    service.show(answer)


# --- time and faults: the admin token ---------------------------------------------------------------


def with_admin(command: Any) -> Any:  # noqa: ANN401
    """Add the options that find the service and the admin token."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the answer as it came, for programs."),
        DATA_DIR,
        click.option("--base-url", envvar="LASTRO_BASE_URL", help="Where the service answers."),
        click.option("--admin-token", envvar="LASTRO_ADMIN_TOKEN", help="The admin token; else the demo's."),
    ):
        command = option(command)
    return command


def _send(
    request: Any,  # noqa: ANN401
    admin_token: str | None,
    base_url: str | None,
    data_dir: Path,
    *,
    as_json: bool,
) -> None:
    def run() -> None:
        client = find_admin(data_dir, base_url, admin_token)
        show(client.send(request.as_json()), as_json=as_json)

    in_words(run)()


@sandbox.command("advance")
@click.argument("duration")
@with_admin
def advance(duration: str, **where: Any) -> None:  # noqa: ANN401
    """Move business time forward: 90s, 15m, 2h, 30d."""
    _send(calls_more.sandbox_advance(seconds_of(duration)), **where)


def seconds_of(text: str) -> int:
    """Read a duration."""
    found = _DURATION.fullmatch(text)
    if found is None or int(found[1]) == 0:
        raise click.UsageError(f"{text} is no duration. Say 90s, 15m, 2h or 30d.")
    return int(found[1]) * _UNITS_S[found[2]]


@sandbox.command("reset-clock")
@with_admin
def reset_clock(**where: Any) -> None:  # noqa: ANN401
    """Bring business time back to real time."""
    _send(calls_more.sandbox_reset_clock(), **where)


@sandbox.command("faults")
@click.option("--latency-ms", type=click.IntRange(0, 60_000), default=0, help="Delay every answer.")
@click.option("--error-rate", type=click.FloatRange(0, 1), default=0.0, help="Share of calls that fail.")
@click.option("--drop-rate", type=click.FloatRange(0, 1), default=0.0, help="Share of lost answers.")
@click.option("--duplicate-rate", type=click.FloatRange(0, 1), default=0.0, help="Share of repeated news.")
@with_admin
def faults(
    latency_ms: int,
    error_rate: float,
    drop_rate: float,
    duplicate_rate: float,
    **where: Any,  # noqa: ANN401
) -> None:
    """Have the provider misbehave; without options it behaves again."""
    request = calls_more.sandbox_faults(
        latency_ms=latency_ms, error_rate=error_rate, drop_rate=drop_rate, duplicate_rate=duplicate_rate
    )
    _send(request, **where)
