"""Routes of the page: HTML, scripts, style, and uPlot; the figures come from the API beside it (`adapters/http`)."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from leeward.adapters.http.problems import Problem, Trouble, shown
from leeward.dashboard import BASE

FILES = Path(__file__).parent / "files"
#: Files of the page, those of every page, and those of uPlot, which the set-up fetches.
OWN = (
    "page.css",
    "page.js",
    "figures.js",
    "graph.js",
    "charts.js",
    "acts.js",
    "asks.js",
    "shown.js",
    "views.js",
    "icon.svg",
)
SHARED, LIBRARY = ("base.css",), ("uPlot.iife.min.js", "uPlot.min.css")
#: A newer release of the page under the same address is taken at once.
HEADERS = {"Cache-Control": "no-cache"}


def routes(uplot: Path) -> list[Route]:
    """`GET /` is the page, `GET /files/...` the rest; the application beside them sets the policy of the headers.

    `uplot` is the folder that uPlot's files are in (`places.web()`); without them the page has no charts, and says so.
    """

    folders = {
        **dict.fromkeys(OWN, FILES), **dict.fromkeys(SHARED, BASE), **dict.fromkeys(LIBRARY, uplot),
    }  # fmt: skip

    async def page(_: Request) -> Response:
        return FileResponse(FILES / "page.html", headers=HEADERS)

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in folders:
            raise Trouble(404, Problem("the page has no such file.", "Open /.", "name", shown(name)))
        path = folders[name] / name
        if not path.is_file():
            raise Trouble(404, Problem(f"uPlot is not installed: no {name}.", "Run make setup, which fetches it."))
        return FileResponse(path, headers=HEADERS)

    return [Route("/", page), Route("/files/{name}", file)]
