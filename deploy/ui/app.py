"""Routes of the live page."""

from pathlib import Path

from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from deploy.ui.guard import PageGuard
from deploy.ui.run_detail import MAX_EXAMPLES, read_detail
from deploy.ui.run_files import read_file
from deploy.ui.run_list import RunList
from deploy.ui.stream import Streams

HERE = Path(__file__).parent
MAX_LISTED = 1_000  # runs in one list


class Routes:
    """Answers of the page, from the folder of runs alone; nothing is written.

    Args:
        root: Folder of runs.
    """

    def __init__(self, root: Path) -> None:
        self._root, self._list = root, RunList(root)

    async def page(self, request: Request) -> Response:
        """Return the page."""
        return FileResponse(HERE / "page.html", media_type="text/html")

    async def runs(self, request: Request) -> Response:
        """Return the newest runs."""
        limit = request.query_params.get("limit", "200")
        if not (limit.isascii() and limit.isdigit() and len(limit) < 6):
            raise HTTPException(400, "limit is not a number")
        return JSONResponse(await to_thread.run_sync(self._list.newest, min(int(limit), MAX_LISTED)))

    async def run(self, request: Request) -> Response:
        """Return configuration, result, privacy statement and origin of one run."""
        detail = await to_thread.run_sync(read_detail, self._root, request.path_params["run"])
        if detail is None:
            raise HTTPException(404)
        return JSONResponse(detail)

    async def examples(self, request: Request) -> Response:
        """Return examples.json of one run."""
        content = await to_thread.run_sync(
            read_file, self._root, request.path_params["run"], "examples.json", MAX_EXAMPLES
        )
        if content is None:
            raise HTTPException(404)
        return Response(content, media_type="application/json")


def make_app(root: Path, token: str) -> PageGuard:
    """Return the guarded application over the folder of runs."""
    routes = Routes(root)
    app = Starlette(
        routes=[
            Route("/", routes.page),
            Route("/api/runs", routes.runs),
            Route("/api/runs/{run}", routes.run),
            Route("/api/runs/{run}/examples", routes.examples),
            Route("/api/events", Streams(root)),
            Mount("/static", StaticFiles(directory=HERE / "static")),
        ]
    )
    return PageGuard(app, token)
