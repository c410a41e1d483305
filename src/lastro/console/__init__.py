"""The console: server-rendered pages over the same actions as the API."""

from lastro.api.routes import Route
from lastro.identity.login import LoginDesk


def routes(_: LoginDesk) -> list[Route]:
    """Return the rows of the console."""
    return []
