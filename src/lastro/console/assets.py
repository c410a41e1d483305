"""The style sheet, the script and the icon: read once, served under a name that changes with their bytes."""

import hashlib
from importlib import resources

from lastro.api.call import Answer, Call
from lastro.kit.errors import NotFound

MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
PREFIX = "/console/static"


def _read() -> dict[str, bytes]:
    folder = resources.files("lastro.console") / "static"
    return {item.name: item.read_bytes() for item in folder.iterdir() if item.is_file()}


FILES = {name: data for name, data in _read().items() if name[name.rfind(".") :] in MEDIA_TYPES}
VERSION = hashlib.sha256(b"\x00".join(FILES[name] for name in sorted(FILES))).hexdigest()[:12]


def url_of(name: str) -> str:
    """Return the address of a static file."""
    return f"{PREFIX}/{VERSION}/{name}"


async def get_file(call: Call) -> Answer:
    """Serve a static file; another version's address still gives today's bytes, but is not kept."""
    name = call.path["name"]
    data = FILES.get(name)
    if data is None:
        raise NotFound("There is no such file.")
    kept = "public, max-age=31536000, immutable" if call.path["version"] == VERSION else "no-store"
    headers = (("Cache-Control", kept), ("X-Content-Type-Options", "nosniff"))
    return Answer(data, media_type=MEDIA_TYPES[name[name.rfind(".") :]], headers=headers)
