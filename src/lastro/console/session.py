"""Who is looking at the console: a sealed cookie that is good for an hour, and the token of its forms."""

import base64
import binascii
import hmac
import secrets
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from lastro.kit.clock import Clock
from lastro.kit.errors import Forbidden
from lastro.kit.sealing import UnsealError, hmac_reference
from lastro.services import Services

SESSION_COOKIE = "lastro_session"
LANGUAGE_COOKIE = "lastro_language"
THEME_COOKIE = "lastro_theme"
LIFETIME_S = 3_600
PREFERENCE_S = 365 * 86_400
COOKIE_LENGTH_MAX = 2_048

_CONTEXT = b"console session"


class Session(msgspec.Struct, frozen=True):
    """What the cookie says. A login token of the API opens no session: that one may only read `/me`."""

    session_id: str
    entity_id: UUID
    expires_at: datetime


def new_session(entity_id: UUID) -> Session:
    """Begin an hour; real time, whatever the sandbox's clock says."""
    return Session(secrets.token_hex(16), entity_id, Clock.real() + timedelta(seconds=LIFETIME_S))


def read_cookies(header: str) -> dict[str, str]:
    """Read a Cookie header; what cannot be read is not there."""
    pairs = (part.partition("=") for part in header.split(";"))
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}


def write_cookie(services: Services, name: str, value: str, *, age_s: int) -> tuple[str, str]:
    """Return the header that sets a cookie of ours; an age of zero takes it away."""
    secure = "; Secure" if services.settings.base_url.startswith("https:") else ""
    return "Set-Cookie", f"{name}={value}; Path=/; Max-Age={age_s}; HttpOnly; SameSite=Lax{secure}"


def seal(services: Services, session: Session) -> str:
    """Write a session as the value of its cookie."""
    sealed = services.keyring.seal(msgspec.json.encode(session), context=_CONTEXT)
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def unseal(services: Services, text: str | None) -> Session | None:
    """Return the session that a cookie holds, unless it is altered or over."""
    if not text or len(text) > COOKIE_LENGTH_MAX:
        return None
    try:
        sealed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        session = msgspec.json.decode(services.keyring.open(sealed, context=_CONTEXT), type=Session)
    except (binascii.Error, ValueError, UnsealError, msgspec.MsgspecError):
        return None
    return session if session.expires_at > Clock.real() else None


def csrf_token(services: Services, session: Session) -> str:
    """Return the word that every form of this session must bring."""
    return hmac_reference(services.keyring.derive("console csrf"), session.session_id).hex()


def check_csrf(services: Services, session: Session, given: str) -> None:
    """Refuse a form that did not come from a page of this session."""
    if not hmac.compare_digest(csrf_token(services, session).encode(), given.encode()):
        raise Forbidden("This form is not from your session. Go back, reload the page and try again.")


def check_origin(headers: dict[str, str], base_url: str) -> None:
    """Refuse a form that another site sent: browsers say where a request comes from."""
    site = headers.get("sec-fetch-site")
    origin = headers.get("origin")
    if site is not None:
        foreign = site not in {"same-origin", "none"}
    else:
        host = headers.get("host", "")
        foreign = origin is not None and origin not in {f"http://{host}", f"https://{host}", base_url}
    if foreign:
        raise Forbidden("This form was sent by another site.")
