"""The command line: `lastro`. A command is imported when it is called, so that the small ones are quick."""

import importlib

import click

from lastro import __version__

# The name of every command, where it lives, and its line in the overview.
COMMANDS = {
    "serve": ("lastro.cli.serving:serve", "Run the API and the background loops."),
    "worker": ("lastro.cli.serving:worker", "Run the background loops alone."),
    "demo": ("lastro.cli.demo:demo", "Show the demo tenant of the sandbox: address, API keys, login."),
    "doctor": ("lastro.cli.doctor:doctor", "Look for what is wrong with this machine or service."),
    "charges": ("lastro.cli.charges:charges", "Ask for money: create, list, get, cancel, refund."),
    "payouts": (
        "lastro.cli.payments:payouts",
        "Send money; and decide payouts that the provider leaves open.",
    ),
    "statement": ("lastro.cli.statement:statement", "Read the money: list, balance, summary, export."),
    "webhooks": ("lastro.cli.webhooks:webhooks", "Endpoints that are told, and what they were told."),
    "listen": ("lastro.cli.listen:listen", "Forward events to a program on this machine."),
    "trigger": ("lastro.cli.trigger:trigger", "Make an event happen in the sandbox."),
    "sandbox": (
        "lastro.cli.sandbox:sandbox",
        "Be the other bank: pay, settle, reject, refund, move the clock.",
    ),
    "get": ("lastro.cli.get:get", "Read any path of the API."),
    "check": ("lastro.cli.check:check", "Prove the ledger. Exit 0 only if all holds."),
    "reconcile": ("lastro.cli.payouts:reconcile", "Match our payouts with the provider's list."),
    "alarms": ("lastro.cli.payouts:alarms", "What a person must look at."),
    "admin": ("lastro.cli.admin:admin", "Tenants, entities, accounts, Pix keys and API keys."),
    "db-url": ("lastro.cli.demo:db_url", "Print the libpq URL of the database in use."),
    "completion": ("lastro.cli.completion:completion", "Print the completion script of your shell."),
}


class LateGroup(click.Group):
    """A group that imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table: what a newcomer needs first stands first."""
        return [*COMMANDS, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview from the table, importing nothing."""
        added = {name: (self.get_command(ctx, name) or self).get_short_help_str() for name in self.commands}
        rows = [*((name, line) for name, (_, line) in COMMANDS.items()), *added.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=LateGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lastro")
def main() -> None:
    """Lastro: Pix accounts over a double-entry ledger."""
