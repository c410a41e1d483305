"""The admin API: what operators do, under /admin/v1 and with the admin token."""

from lastro.api import admin_accounts, admin_api_keys, admin_tenants
from lastro.api.routes import Route
from lastro.identity.passwords import Passwords


def routes(passwords: Passwords) -> list[Route]:
    """Return every admin row; passwords are hashed in the same threads that check logins."""
    return [*admin_tenants.routes(passwords), *admin_accounts.ROUTES, *admin_api_keys.ROUTES]
