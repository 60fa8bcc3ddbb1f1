"""Metrics for Prometheus: read from the service when they are asked for, and counted for requests."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from litestar import Response, get
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from adapters.service.web.responding import Http

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client.core import Metric

    from adapters.service.front.http11 import App, Asked, Message, Receive, Send
    from adapters.service.service import Service

METHODS = {"GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"}
QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Requests:
    """Counts requests and their seconds, by method, address and status; wraps an application."""

    def __init__(self, app: App, registry: CollectorRegistry) -> None:
        self._app = app
        self._count = Counter(
            "laneyard_http_requests", "Requests answered", ["method", "route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "laneyard_http_seconds",
            "Seconds to an answer's head",
            ["route"],
            buckets=QUICK,
            registry=registry,
        )

    async def __call__(self, scope: Asked, receive: Receive, send: Send) -> None:
        """Answers a request and counts it, by the address's pattern and never by what was filled in."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = perf_counter()

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = str(scope.get("path_template") or "none")
                method = scope["method"] if scope["method"] in METHODS else "other"
                self._count.labels(method, route, str(message["status"])).inc()
                self._seconds.labels(route).observe(perf_counter() - began)
            await send(message)

        await self._app(scope, receive, counted)


class State(Collector):
    """What the service is like at the moment of asking."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterable[Metric]:
        """Yields a family of metrics for each thing that is told."""
        service, counts = self._service, self._service.commands.counts()
        yield _gauge("laneyard_log_position", "Position of the last event", service.tail.head)
        yield _gauge("laneyard_subscribers", "Streams of events that are open", service.tail.subscribers)
        yield _gauge("laneyard_ready", "1 when commands are taken", int(service.status == "ready"))
        yield _gauge("laneyard_lanes_stopped", "Lanes that could not be driven on", len(service.stopped))
        yield _gauge("laneyard_lanes_recovering", "Lanes that are driven on", len(service.recovering))
        lanes = GaugeMetricFamily("laneyard_lanes", "Lanes by state", labels=["state"])
        for state, number in service.tables.states().items():
            lanes.add_metric([state], number)
        yield lanes
        commands = GaugeMetricFamily("laneyard_commands", "Commands under way", labels=["state"])
        commands.add_metric(["running"], counts.running)
        commands.add_metric(["waiting"], counts.waiting)
        yield commands
        ended = CounterMetricFamily("laneyard_commands_ended", "Commands that ended", labels=["outcome"])
        ended.add_metric(["done"], counts.done)
        ended.add_metric(["failed"], counts.failed)
        yield ended
        yield from self._connections()
        yield from self._isolates()

    def _connections(self) -> Iterable[Metric]:
        counters = self._service.connections
        here = GaugeMetricFamily("laneyard_connections", "Open connections", labels=["transport"])
        for transport, number in counters.here.items():
            here.add_metric([transport], number)
        yield here
        yield CounterMetricFamily(
            "laneyard_connections_accepted", "Connections that were taken", value=counters.accepted
        )
        yield CounterMetricFamily(
            "laneyard_connections_failed", "Connections that met a bug", value=counters.failed
        )
        refused = CounterMetricFamily(
            "laneyard_door_refused", "Connections and requests refused at the door", labels=["reason"]
        )
        for reason, number in counters.refused.items():
            refused.add_metric([reason], number)
        yield refused

    def _isolates(self) -> Iterable[Metric]:
        silent = GaugeMetricFamily("laneyard_repository_silent", "1 if it hangs", labels=["repository"])
        work = GaugeMetricFamily(
            "laneyard_repository_commands", "Commands of a repository", labels=["repository", "state"]
        )
        for each in self._service.isolates.states():
            silent.add_metric([each.key], int(each.silent))
            work.add_metric([each.key, "running"], each.running)
            work.add_metric([each.key, "waiting"], each.waiting)
        yield silent
        yield work


def _gauge(name: str, what: str, value: float) -> Metric:
    return GaugeMetricFamily(name, what, value=value)


@get("/metrics", operation_id="metrics", media_type="text/plain", sync_to_thread=False)
def show_metrics(request: Http) -> Response[str]:
    """Tells the service's metrics in Prometheus' text format."""
    registry: Any = request.app.state.registry
    body = generate_latest(registry).decode()
    return Response(content=body, media_type=CONTENT_TYPE_LATEST.partition("; charset")[0])
