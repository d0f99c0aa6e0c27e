"""The web application: routes, error format, key check and request counting around one worker."""

from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from ddtree.serving.accounting import Accounting
from ddtree.serving.authentication import Authentication
from ddtree.serving.endpoints import CLIENT_CLOSED, check_model, generation_routes
from ddtree.serving.errors import ApiError
from ddtree.serving.metrics import CONTENT_TYPE, ServingMetrics
from ddtree.serving.settings import ServingSettings
from ddtree.serving.worker import Worker

ENDPOINTS = frozenset({"/v1/models", "/v1/completions", "/v1/chat/completions", "/health", "/metrics"})


def create_app(settings: ServingSettings, worker: Worker, metrics: ServingMetrics, created: int) -> FastAPI:
    """created: Unix time that /v1/models reports."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(generation_routes(settings, worker))
    # The last one added is the outermost.
    if settings.api_key is not None:
        app.add_middleware(Authentication, api_key=settings.api_key)
    app.add_middleware(Accounting, metrics=metrics, endpoints=ENDPOINTS)
    model = {"id": settings.model_name, "object": "model", "created": created, "owned_by": "ddtree"}

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [model]}

    @app.get("/v1/models/{name:path}")
    async def one_model(name: str) -> dict[str, Any]:
        check_model(settings, name)
        return model

    @app.get("/health")
    async def health() -> JSONResponse:
        health = worker.health()
        body = {"status": health.status, "reason": health.reason, "model": settings.model_name}
        return JSONResponse(body, 200 if health.ok else 503)

    @app.get("/metrics")
    async def prometheus() -> Response:
        return Response(metrics.render(), headers={"Content-Type": CONTENT_TYPE})

    @app.exception_handler(ApiError)
    async def api_error(_: Request, error: ApiError) -> JSONResponse:
        return JSONResponse(error.body(), error.status, headers=error.headers)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> JSONResponse:
        message = f"{error.detail}: {request.method} {request.url.path}"
        return JSONResponse(ApiError(error.status_code, message).body(), error.status_code, headers=error.headers)

    @app.exception_handler(ClientDisconnect)
    async def client_left(_: Request, __: ClientDisconnect) -> Response:
        return Response(status_code=CLIENT_CLOSED)

    @app.exception_handler(Exception)
    async def bug(_: Request, error: Exception) -> JSONResponse:
        # Starlette logs the traceback; a client gets no detail of the server's inside.
        message = f"the server failed on this request ({type(error).__name__}); its log says more"
        return JSONResponse(ApiError(500, message, code="internal_error").body(), 500)

    return app
