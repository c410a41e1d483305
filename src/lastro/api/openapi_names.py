"""Names of operations: from method and path, so that they stay when handlers are renamed."""

from lastro.api.routes import Route


def operation_id(route: Route) -> str:
    """Return the operation's id: `GET /v1/charges/{id}` is `getChargesById`."""
    return operation_name(route.method, route.path)


def operation_name(method: str, path: str) -> str:
    """Return the operation id of a method and path."""
    words = [_word(part) for part in path.split("/") if part and part != "v1"]
    return method.lower() + "".join(words)


def _word(part: str) -> str:
    if part.startswith("{"):
        name = part[1:-1]
        return f"By{name[:1].upper()}{name[1:]}"
    pieces = part.replace(".", "-").replace("_", "-").split("-")
    return "".join(piece.capitalize() for piece in pieces)
