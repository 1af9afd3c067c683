"""A headless Chromium that a test drives in real time, by the DevTools protocol: clicks, keys, screenshots."""

from __future__ import annotations

import base64
import itertools
import json
import os
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import connect

PATIENCE_S = 60.0


class Browser:
    """One page. Faults that the page throws or logs are in `faults`."""

    def __init__(self, program: str, folder: Path) -> None:
        command = [
            program, "--headless", "--disable-gpu", f"--user-data-dir={folder}", "--remote-debugging-port=0",
            "--remote-allow-origins=*", "about:blank",
        ]  # fmt: skip
        if os.getuid() == 0:
            command.insert(1, "--no-sandbox")  # it refuses to start as root with one
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)
        self._ids, self.faults, self._stack = itertools.count(1), [], ExitStack()
        try:
            opened = connect(self._page(folder), max_size=None, open_timeout=PATIENCE_S)
            self._socket = self._stack.enter_context(opened)
        except BaseException:
            self.close()
            raise
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def _page(self, folder: Path) -> str:
        """The address of its page's socket."""
        told = folder / "DevToolsActivePort"
        until = time.monotonic() + PATIENCE_S
        while not (told.exists() and told.read_text().count("\n")):
            assert time.monotonic() < until, "Chromium has not started"
            time.sleep(0.05)
        port = told.read_text().splitlines()[0]
        while True:
            pages = [one for one in httpx.get(f"http://127.0.0.1:{port}/json").json() if one["type"] == "page"]
            if pages:
                return str(pages[0]["webSocketDebuggerUrl"])
            assert time.monotonic() < until, "Chromium has no page"

    def send(self, method: str, **parameters: object) -> dict[str, Any]:
        """One command; its result."""
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE_S))
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self._heard(message)

    def _heard(self, message: dict[str, Any]) -> None:
        if message.get("method") == "Runtime.exceptionThrown":
            self.faults.append(message["params"]["exceptionDetails"])
        if message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.faults.append(message["params"]["entry"]["text"] + " " + message["params"]["entry"].get("url", ""))

    def open(self, url: str) -> None:
        """Go there."""
        self.send("Page.navigate", url=url)

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page, awaited."""
        found = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, expression: str) -> Any:
        """Its value as soon as that is true."""
        until = time.monotonic() + PATIENCE_S
        while not (found := self.ask(expression)):
            assert time.monotonic() < until, f"{expression}; the page says: {self.ask('document.body.innerText')}"
            time.sleep(0.05)
        return found

    def text(self, selector: str) -> str:
        """The text that is seen of an element."""
        return " ".join(str(self.ask(f"document.querySelector({json.dumps(selector)}).innerText")).split())

    def click(self, selector: str) -> None:
        """Click on it."""
        self.ask(f"document.querySelector({json.dumps(selector)}).click()")

    def key(self, name: str) -> None:
        """Press and release a key."""
        code = {"Tab": 9, "Enter": 13, "Escape": 27}[name]
        text = {"text": "\r"} if name == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, **text)

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        """Of the window, in pixels."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def prefer(self, **features: str) -> None:
        """Media features: prefers_color_scheme="dark"."""
        found = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.send("Emulation.setEmulatedMedia", features=found)

    def screenshot(self, path: Path) -> None:
        """As PNG."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        """End it."""
        self._stack.close()
        os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
