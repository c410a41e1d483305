"""`lastro completion`: what a shell needs to complete our commands."""

import click
from click.shell_completion import get_completion_class

PROGRAM = "lastro"
WHERE = {
    "bash": "echo 'eval \"$(lastro completion bash)\"' >> ~/.bashrc",
    "zsh": "echo 'eval \"$(lastro completion zsh)\"' >> ~/.zshrc",
    "fish": "lastro completion fish > ~/.config/fish/completions/lastro.fish",
}


@click.command(epilog="\b\nTo keep it:\n" + "\n".join(f"  {line}" for line in WHERE.values()))
@click.argument("shell", type=click.Choice(list(WHERE)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"{shell} is not known to complete.")
    root = context.find_root().command
    click.echo(kind(root, {}, PROGRAM, f"_{PROGRAM}_complete".upper()).source())
