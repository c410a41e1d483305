"""Paths of the console that hold no page: an address that was mistyped, or that only a form goes to."""

from collections.abc import Iterable

from lastro.api.call import Answer, Call
from lastro.api.routes import Route
from lastro.console.pages import local_path, look_of, redirect, render
from lastro.kit.errors import NotFound

DEPTH_MAX = 8


def empty_paths(taken: Iterable[Route]) -> list[str]:
    """Return the shapes of paths under /console, a few levels deep, at which nothing stands."""
    shapes = {_shape(route.path) for route in taken}
    levels = ["/console" + "".join(f"/{{part{n}}}" for n in range(depth)) for depth in range(DEPTH_MAX)]
    paths = [level + end for level in levels for end in ("", "/")]
    return [path for path in paths if _shape(path) not in shapes]


def form_paths(taken: Iterable[Route]) -> list[str]:
    """Return the paths that take a form and show nothing, but stand in the browser after a refused form."""
    routes = list(taken)
    pages = {route.path for route in routes if route.method == "GET"}
    return [route.path for route in routes if route.method == "POST" and route.path not in pages]


def _shape(path: str) -> str:
    return "/".join("*" if part.startswith("{") else part for part in path.split("/"))


async def get_nothing(call: Call) -> Answer:
    """Say that nothing is here, with a way back."""
    return render(call, look_of(call), "trouble.html", status=404, error=NotFound())


async def get_form_path(call: Call) -> Answer:
    """Go on to the page that the form belongs to: the nearest one above."""
    routes = call.desk.routes
    pages = {r.path for r in routes if r.method == "GET" and r.handler is not get_form_path}
    above = call.route.path
    while above and above not in pages:
        above = above.rpartition("/")[0]
    for name, value in call.path.items():
        above = above.replace(f"{{{name}}}", value)
    return redirect(local_path(above))
