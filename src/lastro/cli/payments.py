"""`lastro payouts`: sending money with an API key, beside what an operator decides with the admin token."""

from typing import Any

import click

from lastro.cli.service import Service, with_service
from lastro.cli.show import Shape
from lastro.client import calls

LIST = Shape(
    "payouts", ("id", "status", "amountCents", "createdAt", "pixKey", "description", "lastError", "paidAt")
)

KEY_TYPES = click.Choice(["EMAIL", "PHONE", "CPF", "CNPJ", "EVP"])
STATUSES = click.Choice(
    ["PENDING", "PROCESSING", "SUBMITTED_UNKNOWN", "SUCCEEDED", "FAILED", "CANCELLED", "REFUNDED", "STUCK"]
)


OPERATORS = {"open": "list", "resolve": "resolve"}


class OperatorGroup(click.Group):
    """Adds the operators' commands, which come from a module that knows the database, only when asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return what a client does, then what an operator does."""
        return [*super().list_commands(ctx), *OPERATORS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find a command; an operator's one gets the admin options that its own group would read."""
        if cmd_name not in OPERATORS:
            return super().get_command(ctx, cmd_name)
        from lastro.cli.payouts import payouts as operators  # noqa: PLC0415

        return _with_admin(operators, operators.commands[OPERATORS[cmd_name]], cmd_name)


def _with_admin(group: click.Group, command: click.Command, name: str) -> click.Command:
    """Make one command of an operator's group and one of its commands."""
    own = {param.name for param in group.params}

    def run(**values: Any) -> None:  # noqa: ANN401
        for part, mine in ((group, True), (command, False)):
            if part.callback is not None:
                part.callback(**{key: value for key, value in values.items() if (key in own) is mine})

    return click.Command(name, params=[*command.params, *group.params], callback=run, help=command.help)


@click.group(cls=OperatorGroup)
def payouts() -> None:
    """Send money by Pix key or QR code, and see what became of it."""


@payouts.command("send")
@click.argument("pix_key")
@click.argument("amount_cents", type=click.IntRange(1))
@click.option("--type", "pix_key_type", type=KEY_TYPES, help="Guessed from the Pix key when not given.")
@click.option("--description", help="At most 256 characters; the receiver sees it.")
@click.option("--external-ref", help="Your own reference, unique in the account.")
@click.option("--idempotency-key", help="Say the same one again to repeat without a second payout.")
@with_service
def send(
    service: Service,
    pix_key: str,
    amount_cents: int,
    pix_key_type: str | None,
    **fields: Any,  # noqa: ANN401
) -> None:
    """Send so many cents to a Pix key: 500 is R$ 5,00."""
    kind = pix_key_type or guess_type(pix_key)
    service.show(service.ask(calls.send_payout(pix_key, kind, amount_cents, **fields)))


def guess_type(pix_key: str) -> str:
    """Tell the type of a Pix key where its form leaves no doubt; else ask."""
    if "@" in pix_key:
        return "EMAIL"
    if pix_key.startswith("+"):
        return "PHONE"
    plain = pix_key.replace(".", "").replace("/", "").replace("-", "")
    if len(plain) == 32:
        return "EVP"
    if len(plain) == 14:
        return "CNPJ"
    raise click.UsageError(f"What is {pix_key}? Say --type: eleven digits may be a CPF or a PHONE.")


@payouts.command("pay-qr")
@click.argument("pix_copy_and_paste")
@click.option("--amount-cents", type=click.IntRange(1), help="What the code asks for when not given.")
@click.option("--description", help="At most 256 characters; the receiver sees it.")
@click.option("--external-ref", help="Your own reference, unique in the account.")
@click.option("--idempotency-key", help="Say the same one again to repeat without a second payout.")
@with_service
def pay_qr(service: Service, pix_copy_and_paste: str, amount_cents: int | None, **fields: Any) -> None:  # noqa: ANN401
    """Pay a QR code, given in its copy-and-paste form."""
    if amount_cents is None:
        seen = service.client.decode_qr(pix_copy_and_paste)
        if seen.amount_cents is None:
            raise click.UsageError("The code leaves the amount open: say --amount-cents.")
        amount_cents, fields["qr_code_decode_id"] = seen.amount_cents, seen.id
    service.show(service.ask(calls.pay_qr(pix_copy_and_paste, amount_cents, **fields)))


@payouts.command("lookup")
@click.argument("pix_key")
@click.option("--type", "pix_key_type", type=KEY_TYPES, help="Guessed from the Pix key when not given.")
@with_service
def lookup(service: Service, pix_key: str, pix_key_type: str | None) -> None:
    """Ask who holds a Pix key."""
    service.show(service.ask(calls.look_up(pix_key, pix_key_type or guess_type(pix_key))))


@payouts.command("decode")
@click.argument("pix_copy_and_paste")
@with_service
def decode(service: Service, pix_copy_and_paste: str) -> None:
    """Read what a QR code asks for."""
    service.show(service.ask(calls.decode_qr(pix_copy_and_paste)))


@payouts.command("list")
@click.option("--status", type=STATUSES)
@click.option("--limit", type=click.IntRange(1, 200), help="Rows of a page.")
@click.option("--cursor", help="Go on after this page.")
@with_service
def list_(service: Service, **query: Any) -> None:  # noqa: ANN401
    """List the account's payouts, newest first."""
    service.show(service.ask(calls.list_payouts(**query)), LIST)


@payouts.command("get")
@click.argument("payout_id")
@click.option("--external-ref", is_flag=True, help="The argument is your own reference.")
@with_service
def get(service: Service, payout_id: str, *, external_ref: bool) -> None:
    """Read a payout by its id, or by its end-to-end id once it has settled."""
    if external_ref:
        request = calls.get_payout_by_external_ref(payout_id)
    elif payout_id.startswith("E") and len(payout_id) == 32:
        request = calls.get_payout_by_end_to_end_id(payout_id)
    else:
        request = calls.get_payout(payout_id)
    service.show(service.ask(request))


@payouts.command("movement")
@click.argument("payout_id")
@with_service
def movement(service: Service, payout_id: str) -> None:
    """Read the movement of a payout."""
    answer = service.ask(calls.get_payout_movement(payout_id))
    flat = {"movementId": answer["movementId"], **answer["movement"], "entries": answer["entries"]}
    service.show(answer if service.as_json else flat)
