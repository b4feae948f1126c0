"""Serve the built site from this machine."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SITE = Path(__file__).resolve().parents[2] / "_site"


class Quiet(SimpleHTTPRequestHandler):
    """A file server that prints no log."""

    def log_message(self, *_arguments) -> None:
        """Say nothing."""


@contextmanager
def serve_files(folder: Path) -> Iterator[str]:
    """The address under which `folder` is served."""
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
