"""Chromium without a window, driven over WebDriver's HTTP (W3C WebDriver 2), for tests of pages."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

CHROME, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
MISSING: Final = CHROME is None or DRIVER is None
REASON: Final = "needs Chromium and its driver: apt-get install chromium chromium-driver"
_SWITCHES = (
    "headless", "no-sandbox", "disable-gpu", "disable-background-networking", "disable-component-update",
    "disable-sync", "hide-scrollbars", "disable-dev-shm-usage", "no-first-run",
)  # fmt: skip
_SPECIAL: Final = {"Escape": "\ue00c", "Enter": "\ue007", "ArrowDown": "\ue015", "ArrowUp": "\ue013", "Shift": "\ue008"}


class Browser:
    """One window. Scripts and pictures come back as Python values."""

    def __init__(self, port: int, session: str) -> None:
        self.base = f"http://127.0.0.1:{port}/session/{session}"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the value that the driver answers with."""
        return _ask(f"{self.base}{path}", method, body)

    def open(self, file: Path) -> float:
        """Open a page of the explorer. Returns the milliseconds until it could be used, as the page measured them."""
        self.ask("POST", "/url", {"url": file.as_uri()})
        for _ in range(1200):
            ready = self.run("return document.documentElement.dataset.ready")
            if ready:
                return float(ready)
            time.sleep(0.05)
        raise AssertionError(f"{file} does not start")

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what the body of a JavaScript function returns."""
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.devtools("Emulation.setDeviceMetricsOverride", size)

    def devtools(self, command: str, parameters: dict[str, Any]) -> Any:
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def prefer(self, scheme: str) -> None:
        """Let the page see a preference for "dark" or "light" colours."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.devtools("Emulation.setEmulatedMedia", {"features": features})

    def move(self, x: float, y: float) -> None:
        self._act("pointer", [{"type": "pointerMove", "duration": 0, "x": int(x), "y": int(y)}])

    def click(self, x: float, y: float) -> None:
        press = [{"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp")]
        self._act("pointer", [{"type": "pointerMove", "duration": 0, "x": int(x), "y": int(y)}, *press])

    def press(self, *keys: str) -> None:
        """Press and release keys, one after the other."""
        values = [_SPECIAL.get(key, key) for key in keys]
        self._act("key", [{"type": kind, "value": value} for value in values for kind in ("keyDown", "keyUp")])

    def _act(self, kind: str, actions: list[dict[str, Any]]) -> None:
        source: dict[str, Any] = {"type": kind, "id": kind, "actions": actions}
        if kind == "pointer":
            source["parameters"] = {"pointerType": "mouse"}
        self.ask("POST", "/actions", {"actions": [source]})

    def picture(self, file: Path) -> None:
        """Write what is seen as a PNG file."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(self.ask("GET", "/screenshot")))


def _ask(url: str, method: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise AssertionError(json.load(error)["value"]["message"]) from None


@contextmanager
def browser() -> Iterator[Browser]:
    """Start the driver and a window with a profile of its own; end both."""
    assert CHROME is not None
    assert DRIVER is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        log = Path(profile) / "driver.log"
        with log.open("w") as output:
            driver = subprocess.Popen([DRIVER, "--port=0"], stdout=output, stderr=output)
        try:
            port = _port(log)
            arguments = [f"--{switch}" for switch in _SWITCHES] + [f"--user-data-dir={profile}/user"]
            options = {"binary": CHROME, "args": arguments}
            wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
            session = _ask(f"http://127.0.0.1:{port}/session", "POST", wanted)["sessionId"]
            window = Browser(port, session)
            try:
                yield window
            finally:
                window.ask("DELETE", "")
        finally:
            driver.terminate()
            driver.wait(20)


def _port(log: Path) -> int:
    for _ in range(300):
        words = log.read_text().split("started successfully on port ")
        if len(words) > 1:
            return int(words[1].split(".")[0])
        time.sleep(0.1)
    raise AssertionError(f"the driver does not start: {log.read_text()}")
