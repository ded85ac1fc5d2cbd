"""Probes and metrics on their own thread, so that they answer whatever the event loop does."""

import json
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from consumer.core.errors import SettingsError

STALLED_AFTER = 30.0
"""Seconds without a tick of the event loop after which the process counts as dead."""


@dataclass(slots=True)
class Health:
    """Written by the event loop, read by the probe thread. Both whys are empty where all is well."""

    last_tick: float = 0.0
    unready: str = "starting"
    pool: str = ""

    @property
    def why_unready(self) -> str:
        return self.unready or self.pool


class ProbeServer:
    """Serves /livez, /readyz and /metrics until it is closed."""

    def __init__(self, host: str, port: int, health: Health, registry: CollectorRegistry) -> None:
        try:
            self._server = ThreadingHTTPServer((host, port), _handler(health, registry))
        except OSError as error:
            raise SettingsError(
                f"probes can't listen on {host} port {port}: {error.strerror}; set http.port to a free one"
            ) from None
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, name="probes", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(health: Health, registry: CollectorRegistry) -> type[BaseHTTPRequestHandler]:
    class Probe(BaseHTTPRequestHandler):
        server_version = "consumer"
        sys_version = ""

        def do_GET(self) -> None:
            match self.path.partition("?")[0]:
                case "/livez":
                    late = time.time() - health.last_tick
                    alive = late < STALLED_AFTER
                    self._say(alive, "" if alive else f"the event loop has not run for {late:.0f} s")
                case "/readyz":
                    self._say(not health.why_unready, health.why_unready)
                case "/metrics":
                    encode, content_type = choose_encoder(self.headers.get("Accept", ""))
                    self._send(200, content_type, encode(registry))
                case _:
                    self._send(404, "text/plain", b"there are /livez, /readyz and /metrics\n")

        def _say(self, good: bool, why: str) -> None:
            body = {"status": "ok"} if good else {"status": "unavailable", "reason": why}
            self._send(200 if good else 503, "application/json", json.dumps(body).encode())

        def _send(self, status: int, content_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Probes come every few seconds; they are not news."""

    return Probe
