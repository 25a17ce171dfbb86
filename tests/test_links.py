"""Links that lead out of the documentation are visited, here on a server of this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tools import links


class Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/there" else 404)
        self.end_headers()
        self.wfile.write(b'<h2 id="section">One</h2>')

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_link_leads_to_its_page_and_section(host: str) -> None:
    assert links.problem(f"{host}/there") == ""
    assert links.problem(f"{host}/there#section") == ""
    assert links.problem(f"{host}/there#other") == "no section other"
    assert links.problem(f"{host}/gone") == "status 404"
    assert "refused" in links.problem("http://127.0.0.1:1/")


def test_each_address_is_found_once_with_its_files(tmp_path: Path) -> None:
    first, second = tmp_path / "a.md", tmp_path / "b.py"
    first.write_text("[one](https://example.org/one), <https://example.org/two#part>. https://example.org/one.")
    second.write_text("# https://example.org/one and http://localhost:3")
    assert links.addresses((first, second)) == {
        "https://example.org/one": [str(first), str(second)],
        "https://example.org/two#part": [str(first)],
    }
