"""grpc.health.v1: Check and Watch for each service, and for the server as a whole under the empty name.

The messages are those of grpcio-health-checking. Its servicer is not used: it writes to a watcher while it holds the
lock that every change of status needs, so that one watcher who does not read would stop the server from saying that it
drains; and its Watch keeps a draining server waiting. Refuses to serve again once the server has begun to drain, and
one certificate more than WATCHES_MAX watches.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Final

import grpc
from grpc_health.v1 import health_pb2 as pb

from rgs.api.auth import Context, certificate_of
from rgs.api.calls import Calls, end_with
from rgs.api.quotas import STREAM_RETRY_MS
from rgs.core.errors import PartyLimitError, UnavailableError

SERVICE: Final = pb.DESCRIPTOR.services_by_name["Health"].full_name
WHOLE_SERVER: Final = ""
WATCHES_MAX: Final = 64
"""Watches that one certificate may have open; health asks no allow-list, so that there is no party to count for."""

SERVING: Final = pb.HealthCheckResponse.SERVING
NOT_SERVING: Final = pb.HealthCheckResponse.NOT_SERVING


class Health:
    """The health of the services named; all SERVING from the start."""

    def __init__(self, services: Iterable[str], calls: Calls) -> None:
        self._calls = calls
        self._serving = dict.fromkeys([WHOLE_SERVER, *services], True)
        self._draining = False
        self._changed = asyncio.Event()
        self._watches: Counter[bytes | None] = Counter()

    def set_serving(self, service: str, *, serving: bool) -> None:
        """Say whether a service serves. Without effect once `drain` was called."""
        if not self._draining:
            self._set(service, serving=serving)

    def drain(self) -> None:
        """NOT_SERVING for all, for good."""
        self._draining = True
        for service in self._serving:
            self._set(service, serving=False)

    def handlers(self) -> dict[str, grpc.RpcMethodHandler[pb.HealthCheckRequest, pb.HealthCheckResponse]]:
        """The methods as gRPC takes them."""
        return {
            "Check": grpc.unary_unary_rpc_method_handler(
                self._check, pb.HealthCheckRequest.FromString, pb.HealthCheckResponse.SerializeToString
            ),
            "Watch": grpc.unary_stream_rpc_method_handler(
                self._watch, pb.HealthCheckRequest.FromString, pb.HealthCheckResponse.SerializeToString
            ),
        }

    def _set(self, service: str, *, serving: bool) -> None:
        if self._serving[service] is not serving:
            self._serving[service] = serving
            self._changed.set()
            self._changed = asyncio.Event()

    async def _check(self, request: pb.HealthCheckRequest, context: Context) -> pb.HealthCheckResponse:
        response = self._response(request)
        if response.status == pb.HealthCheckResponse.SERVICE_UNKNOWN:
            context.set_code(grpc.StatusCode.NOT_FOUND)
        return response

    async def _watch(self, request: pb.HealthCheckRequest, context: Context) -> None:
        certificate = certificate_of(context)
        if self._watches[certificate] >= WATCHES_MAX:
            error = PartyLimitError(
                f"this certificate has {WATCHES_MAX} watches already",
                field="watches",
                limit=WATCHES_MAX,
                value=WATCHES_MAX + 1,
                retry_after_ms=STREAM_RETRY_MS,
            )
            end_with(context, self._calls.status(error, f"{SERVICE}/Watch", ""))
            return
        self._watches[certificate] += 1
        try:
            await self._tell(request, context)
        finally:
            self._watches[certificate] -= 1
            if not self._watches[certificate]:
                del self._watches[certificate]

    async def _tell(self, request: pb.HealthCheckRequest, context: Context) -> None:
        told = None
        while True:
            changed, response = self._changed, self._response(request)
            if response != told:
                await context.write(response)
                told = response
            try:
                await self._calls.wait_for(changed.wait)
            except UnavailableError as error:
                if self._response(request) != told:
                    continue  # the server drains: the last word first
                end_with(context, self._calls.status(error, f"{SERVICE}/Watch", ""))
                return

    def _response(self, request: pb.HealthCheckRequest) -> pb.HealthCheckResponse:
        serving = self._serving.get(request.service)
        if serving is None:
            return pb.HealthCheckResponse(status=pb.HealthCheckResponse.SERVICE_UNKNOWN)
        return pb.HealthCheckResponse(status=SERVING if serving else NOT_SERVING)
