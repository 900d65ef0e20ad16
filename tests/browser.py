# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium over the pipe of its DevTools protocol: a page, what it logged and asked for, and its picture.

The pipe needs neither a port nor a library: messages are JSON, each with a zero byte behind it, on descriptors 3 and 4.
Source of the form: Chromium's documentation of ``--remote-debugging-pipe``.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_WAIT_S = 60.0
_FLAGS = (
    "--headless", "--disable-gpu", "--no-first-run", "--no-default-browser-check", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--mute-audio",
    "--hide-scrollbars", "--force-color-profile=srgb", "--remote-debugging-pipe",
)  # fmt: skip


def chromium() -> str:
    """The browser's command; a missing one fails the test and names the package."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.fail(
            "no Chromium is in PATH: install the package chromium (on Ubuntu the snap chromium, or google-chrome)"
        )
    return found


@dataclass
class Page:
    """A loaded page: ``told`` is what was logged or thrown, ``asked`` the addresses that were asked for."""

    browser: Browser
    session: str
    told: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def value(self, expression: str) -> Any:
        """What an expression comes to in the page; a promise is waited for."""
        answer = self.browser.call(
            "Runtime.evaluate", self.session, expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def picture(self, *, height: int = 0) -> bytes:
        """A PNG of what is seen, or of so many pixels from the top of the page."""
        clip = {"x": 0, "y": 0, "width": self.value("innerWidth"), "height": height, "scale": 1}
        more = {"clip": clip, "captureBeyondViewport": True} if height else {}
        answer = self.browser.call("Page.captureScreenshot", self.session, format="png", optimizeForSpeed=True, **more)
        return base64.b64decode(answer["data"])


class Browser:
    """A running browser. ``call`` sends one command and returns its answer."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._next, self._rest = 0, b""
        self._pages: dict[str, Page] = {}

    def call(self, method: str, session: str = "", **params: Any) -> Any:
        """Send a command; raises AssertionError for an error and for none in a minute."""
        self._next += 1
        number = self._next
        message = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self._commands, text) :]
        while True:
            got = self._read()
            if got.get("id") == number:
                assert "error" not in got, (method, got["error"])
                return got["result"]

    def _read(self) -> dict[str, Any]:
        """The next message; what a page logs and asks for is noted on the way."""
        until = time.monotonic() + _WAIT_S
        while b"\0" not in self._rest:
            assert select.select([self._answers], [], [], max(0.0, until - time.monotonic()))[0], "Chromium is silent"
            data = os.read(self._answers, 1 << 20)
            assert data, "Chromium ended"
            self._rest += data
        text, _, self._rest = self._rest.partition(b"\0")
        got: dict[str, Any] = json.loads(text)
        page = self._pages.get(got.get("sessionId", ""))
        if page is not None:
            self._note(page, got.get("method", ""), got.get("params", {}))
        return got

    @staticmethod
    def _note(page: Page, method: str, params: dict[str, Any]) -> None:
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            page.told.append(json.dumps(params))
        if method == "Network.requestWillBeSent":
            page.asked.append(params["request"]["url"])

    def open(self, address: str, *, width: int, height: int = 800, dark: bool = False, script: bool = True) -> Page:
        """Load a page in a window of that size in CSS pixels, and wait until it is loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable", session)
        self.call(
            "Emulation.setDeviceMetricsOverride", session, width=width, height=height, deviceScaleFactor=1,
            mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", session, features=[scheme])
        self.call("Emulation.setScriptExecutionDisabled", session, value=not script)
        assert "errorText" not in self.call("Page.navigate", session, url=address)
        until = time.monotonic() + _WAIT_S
        while page.value("document.readyState") != "complete":
            assert time.monotonic() < until, f"{address} is not loaded"
            time.sleep(0.05)
        return page


@contextmanager
def running(folder: Path) -> Iterator[Browser]:
    """A browser whose profile is in ``folder``; it is gone afterwards."""
    command, theirs, ours = chromium(), os.pipe(), os.pipe()
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 100) for end in (theirs[0], ours[1])]
    argv = [command, *_FLAGS, f"--user-data-dir={folder}", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with (folder / "browser.log").open("wb") as log:
        actions = [(os.POSIX_SPAWN_DUP2, ends[0], 3), (os.POSIX_SPAWN_DUP2, ends[1], 4)]
        actions += [(os.POSIX_SPAWN_DUP2, log.fileno(), 1), (os.POSIX_SPAWN_DUP2, log.fileno(), 2)]
        environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
        pid = os.posix_spawn(command, argv, environment, file_actions=actions, setpgroup=0)
    for end in (*ends, theirs[0], ours[1]):
        os.close(end)
    try:
        yield Browser(theirs[1], ours[0])
    finally:
        os.close(theirs[1])
        os.close(ours[0])
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
