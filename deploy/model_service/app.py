"""Routes of the local model server; importing it must not import torch."""

import logging
from collections.abc import Collection, Mapping
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp

from client.lists.order import two_digits
from common.errors import FedloomError
from common.options import Scalar
from deploy.model_service.guard import ServiceGuard
from deploy.model_service.spec import ServedModel, Serving

LOG = logging.getLogger("fedloom.serving")

MAX_FAULTS = 20
"""Maximum number of faults of a body in an answer."""


def build_app(
    model: ServedModel, serving: Serving, card: Mapping[str, Any], *, token: str, hosts: Collection[str]
) -> ASGIApp:
    """Return the application; an empty token means that none is needed."""
    app = FastAPI(
        title=f"fedloom: {card.get('for', model.config.task)}",
        version=version("fedloom"),
        docs_url=None,
        redoc_url=None,
    )
    app.router.redirect_slashes = False
    app.add_exception_handler(RequestValidationError, _explain)

    @app.get("/healthz")
    def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/v1/model")
    def card_of_model() -> dict[str, Any]:
        return dict(card)

    def answer(request: Any) -> Any:
        try:
            reply = serving.answer(model, request)
        except FedloomError as error:
            return JSONResponse({"detail": str(error)}, 422)
        except Exception as error:  # a traceback could hold values of the body
            LOG.error("request failed: %s", type(error).__name__)  # noqa: TRY400 - no traceback
            return JSONResponse({"detail": "the request could not be answered; see the server's log"}, 500)
        return {"model": model.run, "items": [_rounded(item) for item in reply.items], "notes": list(reply.notes)}

    answer.__annotations__["request"] = serving.request
    app.post(f"/v1/{serving.route}")(answer)
    return ServiceGuard(app, token, hosts)


def _rounded(item: Mapping[str, Scalar | None]) -> dict[str, Scalar | None]:
    """Return an answer with its score to two digits, as `fedloom recommend` prints it."""
    score = item.get("score")
    return {**item, "score": two_digits(score)} if isinstance(score, float) else dict(item)


async def _explain(request: Request, error: Exception) -> JSONResponse:
    """Return the faults of a body by place, without its values."""
    faults = error.errors() if isinstance(error, RequestValidationError) else []
    lines = [f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}" for fault in faults[:MAX_FAULTS]]
    return JSONResponse({"detail": "; ".join(lines)}, 422)
