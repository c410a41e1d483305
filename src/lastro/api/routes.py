"""The route table's row, and the tree that finds it: routing, gates, policy and OpenAPI come from here."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import unquote

import msgspec

from lastro.kit.errors import LastroError, MethodNotAllowed, NotFound

# A handler takes the `Call` of api/call.py, which names this table and so cannot be named here.
Handler = Callable[[Any], Awaitable[Any]]


class Auth(StrEnum):
    """Who may call."""

    API_KEY = "api key"
    ADMIN = "admin token"
    TOKEN = "login token"  # noqa: S105
    OPEN = "open"


class Select(StrEnum):
    """How a request says which account it is for."""

    HEADER = "X-Pix-Account-Id where the API key reaches several"
    HEADER_ALWAYS = "X-Pix-Account-Id always"
    PATH = "the path"
    QUERY = "pixAccountId, else the header"
    BODY = "pixAccountId of the body, else the header"
    NONE = "no account"


@dataclass(frozen=True, slots=True)
class Rate:
    """A call allowance: the label it is counted and shown under, and its ceiling."""

    label: str
    per_minute: int


@dataclass(frozen=True)
class Route:
    """One row: everything that is true of a method and path."""

    method: str
    path: str
    handler: Handler
    summary: str
    rate: Rate
    auth: Auth = Auth.API_KEY
    select: Select = Select.HEADER
    body: type[msgspec.Struct] | None = None
    query: type[msgspec.Struct] | None = None
    answer: Any = None
    status: int = 200
    idempotent: bool = False
    tag: str = ""
    errors: tuple[type[LastroError], ...] = field(default=())
    media_type: str = "application/json"
    sandbox_only: bool = False
    account_param: str = ""
    form: bool = False  # takes an HTML form instead of JSON
    documented: bool = True

    @property
    def path_names(self) -> list[str]:
        """Return the names of the path's parameters."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]


class _Node:
    """One segment of the tree."""

    __slots__ = ("any", "name", "routes", "words")

    def __init__(self) -> None:
        self.words: dict[str, _Node] = {}
        self.any: _Node | None = None
        self.name = ""
        self.routes: dict[str, Route] = {}


class Router:
    """Finds a route by its words first, then by its parameters."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        self._static: dict[str, Mapping[str, Route]] = {}
        for route in routes:
            node = self._place(route.path)
            if route.method in node.routes:
                raise ValueError(f"two routes for {route.method} {route.path}")
            node.routes[route.method] = route
            if "{" not in route.path:
                self._static[route.path] = node.routes

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """Return the route and its path parameters; 404 or 405 when there is none."""
        found = self._static.get(path)
        values: dict[str, str] = {}
        if found is None:
            parts = path.split("/")[1:]
            found, segments = _walk(self._root, parts, 0, []) or (None, [])
            if not found:
                raise NotFound("There is no such route. The API is described at /docs.")
            route = found.get(method)
            if route:
                values = dict(zip(route.path_names, map(unquote, segments), strict=True))
        route = found.get(method)
        if route is None:
            raise MethodNotAllowed(allow=sorted(found))
        return route, values

    def _place(self, path: str) -> _Node:
        node = self._root
        for part in path.split("/")[1:]:
            if part.startswith("{"):
                node.any = node.any or _Node()
                node = node.any
            else:
                node = node.words.setdefault(part, _Node())
        return node


def _walk(
    node: _Node, parts: list[str], index: int, segments: list[str]
) -> tuple[Mapping[str, Route], list[str]] | None:
    if index == len(parts):
        return (node.routes, segments) if node.routes else None
    part = parts[index]
    word = node.words.get(part)
    if word is not None and (found := _walk(word, parts, index + 1, segments)):
        return found
    if node.any is not None and part:
        return _walk(node.any, parts, index + 1, [*segments, part])
    return None
