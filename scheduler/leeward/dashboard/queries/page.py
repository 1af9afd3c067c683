"""Routes of the page: HTML, figures as JSON, files; all from this server, as the policy in the header demands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from leeward.adapters.organisations.serving import error
from leeward.dashboard import BASE

FILES = Path(__file__).parent / "files"
#: Files of the page, those of every page, and those of uPlot, which the set-up fetches.
OWN, SHARED = ("page.css", "page.js", "icon.svg"), ("base.css",)
LIBRARY = ("uPlot.iife.min.js", "uPlot.min.css")
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # a newer release of the page under the same address is taken at once
}


def routes(data: Callable[[], Mapping[str, object]], uplot: Path) -> list[Route]:
    """`GET /` is the page, `GET /data` the answer of `data`, `GET /files/...` the rest.

    `data` gives `Figures`. It is called once a second for each open page, in the event loop: it must not wait. `uplot`
    is the folder that uPlot's files are in (`places.web()`); without them the page has no charts, and says so.
    """

    folders = {
        **dict.fromkeys(OWN, FILES), **dict.fromkeys(SHARED, BASE), **dict.fromkeys(LIBRARY, uplot),
    }  # fmt: skip

    async def page(_: Request) -> Response:
        return FileResponse(FILES / "page.html", headers=HEADERS)

    async def figures(_: Request) -> Response:
        return JSONResponse(data(), headers=HEADERS | {"Cache-Control": "no-store"})

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in folders:
            raise HTTPException(404, f"the page has no file {name}.", headers=HEADERS)
        path = folders[name] / name
        if not path.is_file():
            return error(404, f"uPlot is not installed: no {name}.", "Run make setup, which fetches it.", HEADERS)
        return FileResponse(path, headers=HEADERS)

    return [Route("/", page), Route("/data", figures), Route("/files/{name}", file)]
