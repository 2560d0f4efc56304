"""grpc.health.v1: Check and Watch for each service, and for the whole server under the empty name.

The messages come from grpcio-health-checking. Its servicer is not used: it writes to a watcher while it holds the lock
that every change of status needs, so that one watcher who does not read would stop all changes; and its Watch
keeps a draining server waiting. A draining server never becomes SERVING again. Calls are limited for each certificate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

import grpc
from grpc_health.v1 import health_pb2 as pb

from rgs.api.auth import Context, certificate_of
from rgs.api.calls import Calls, end_with, refuse
from rgs.core.errors import PartyLimitError, UnavailableError

SERVICE: Final = pb.DESCRIPTOR.services_by_name["Health"].full_name
WHOLE_SERVER: Final = ""

SERVING: Final = pb.HealthCheckResponse.SERVING
NOT_SERVING: Final = pb.HealthCheckResponse.NOT_SERVING


class Health:
    """The health of the services named; all SERVING from the start."""

    def __init__(self, services: Iterable[str], calls: Calls) -> None:
        self._calls = calls
        self._serving = dict.fromkeys([WHOLE_SERVER, *services], True)
        self._draining = False
        self._changed = asyncio.Event()

    def set_serving(self, service: str, *, serving: bool) -> None:
        """Set whether a service serves. Without effect after `drain`."""
        if not self._draining:
            self._set(service, serving=serving)

    def drain(self) -> None:
        """Set all services to NOT_SERVING for good."""
        self._draining = True
        for service in self._serving:
            self._set(service, serving=False)

    def handlers(self) -> dict[str, grpc.RpcMethodHandler[pb.HealthCheckRequest, pb.HealthCheckResponse]]:
        """The handlers for gRPC."""
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
        await self._enter(context, "Check")
        if response.status == pb.HealthCheckResponse.SERVICE_UNKNOWN:
            context.set_code(grpc.StatusCode.NOT_FOUND)
        return response

    async def _watch(self, request: pb.HealthCheckRequest, context: Context) -> None:
        await self._enter(context, "Watch")
        sent = None
        while True:
            changed, response = self._changed, self._response(request)
            if response != sent:
                await context.write(response)
                sent = response
            try:
                await self._calls.wait_for(changed.wait)
            except UnavailableError as error:
                if self._response(request) != sent:
                    continue  # the server drains: send the last status first
                end_with(context, self._calls.status(error, f"{SERVICE}/Watch", ""))
                return

    async def _enter(self, context: Context, method: str) -> None:
        """Count the call, and end it if there are too many. The caller's party is not looked up."""
        try:
            self._calls.quotas.enter_health(certificate_of(context))
        except PartyLimitError as error:
            await refuse(context, self._calls.status(error, f"{SERVICE}/{method}", ""))

    def _response(self, request: pb.HealthCheckRequest) -> pb.HealthCheckResponse:
        serving = self._serving.get(request.service)
        if serving is None:
            return pb.HealthCheckResponse(status=pb.HealthCheckResponse.SERVICE_UNKNOWN)
        return pb.HealthCheckResponse(status=SERVING if serving else NOT_SERVING)
