"""`lastro charges`: asking for money."""

from typing import Any

import click

from lastro.cli.service import Service, with_service
from lastro.cli.show import Shape
from lastro.client import calls

LIST = Shape("charges", ("id", "status", "amountCents", "createdAt", "tag", "externalRef", "paidAt"))
STATUSES = click.Choice(["PENDING", "PAID", "EXPIRED", "REFUNDED", "FAILED", "CANCELLED"])


@click.group()
def charges() -> None:
    """Ask for money: QR codes and their life."""


@charges.command("create")
@click.argument("amount_cents", type=click.IntRange(1))
@click.option(
    "--variant", type=click.Choice(["simple", "debtor", "cobv"]), default="simple", show_default=True
)
@click.option("--tag", help="Your own words, 1 to 200 characters.")
@click.option("--external-ref", help="Your own reference, unique in the account.")
@click.option("--expiration-date", help="A UTC instant ending in Z; else 24 hours from now.")
@click.option("--debtor-name", help="Variants debtor and cobv.")
@click.option("--debtor-document", help="Variants debtor and cobv: a CPF or CNPJ.")
@click.option("--due-date", help="Variant cobv: YYYY-MM-DD.")
@click.option("--type-fine", type=click.Choice(["NONE", "VALUE", "PERCENT"]), help="Variant cobv.")
@click.option("--fine", type=float, help="Variant cobv: reais or percent.")
@click.option("--idempotency-key", help="Say the same one again to repeat without a second charge.")
@with_service
def create(service: Service, amount_cents: int, **fields: Any) -> None:  # noqa: ANN401
    """Create a charge of so many cents: 1990 is R$ 19,90."""
    service.show(service.ask(calls.create_charge(amount_cents, **fields)))


@charges.command("list")
@click.option("--status", type=STATUSES)
@click.option("--from", "from_", help="The first day, YYYY-MM-DD.")
@click.option("--to", help="The last day, YYYY-MM-DD.")
@click.option("--limit", type=click.IntRange(1, 200), help="Rows of a page.")
@click.option("--cursor", help="Go on after this page.")
@with_service
def list_(service: Service, **query: Any) -> None:  # noqa: ANN401
    """List charges, newest first."""
    service.show(service.ask(calls.list_charges(**query)), LIST)


@charges.command("get")
@click.argument("charge_id")
@click.option("--external-ref", is_flag=True, help="The argument is your own reference.")
@with_service
def get(service: Service, charge_id: str, *, external_ref: bool) -> None:
    """Read a charge."""
    read = calls.get_charge_by_external_ref if external_ref else calls.get_charge
    service.show(service.ask(read(charge_id)))


@charges.command("cancel")
@click.argument("charge_id")
@with_service
def cancel(service: Service, charge_id: str) -> None:
    """Cancel a pending charge."""
    service.show(service.ask(calls.cancel_charge(charge_id)))


@charges.command("refresh")
@click.argument("charge_id")
@with_service
def refresh(service: Service, charge_id: str) -> None:
    """Have the service ask the provider about a charge now."""
    answer = service.ask(calls.refresh_charge(charge_id))
    if service.as_json:
        service.show(answer)
        return
    service.show({"kind": answer["kind"], "providerStatus": answer["providerStatus"], **answer["charge"]})


@charges.command("refund")
@click.argument("charge_id")
@click.option("--amount-cents", type=click.IntRange(1), help="All that is left when none is given.")
@click.option("--description")
@click.option("--idempotency-key", help="Say the same one again to repeat without a second refund.")
@with_service
def refund(service: Service, charge_id: str, **fields: Any) -> None:  # noqa: ANN401
    """Give a paid charge back, in part or whole."""
    service.show(service.ask(calls.refund_charge(charge_id, **fields)))
