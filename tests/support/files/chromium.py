"""Headless Chromium, controlled through a pipe by the DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # tests run as root in containers
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--use-angle=swiftshader",  # WebGL without a GPU
    "--enable-unsafe-swiftshader",
    "--disable-gpu-compositing",  # software rendering of the rest of the page would be slow
    "--disable-gpu-rasterization",
    "--mute-audio",
)


def chromium() -> str | None:
    """Path of Chromium; None if it is not installed."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Navigated(RuntimeError):
    """The page was replaced while an expression was evaluated in it."""


class Page:
    """A tab, with its errors and requests."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back = os.fdopen(to, "wb", buffering=0), os.fdopen(back, "rb")
        self._number = 0
        self._session: str | None = None
        self.errors: list[str] = []
        """Uncaught exceptions, and errors that the page or the browser logged."""
        self.requests: list[str] = []
        """Requested URLs."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command to the browser; returns its answer."""
        self._number += 1
        command: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        self._to.write(json.dumps(command).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == self._number:
                if "navigated" in message.get("error", {}).get("message", ""):
                    raise Navigated(method)
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return dict(message["result"])

    def _next(self) -> dict[str, Any]:
        content = bytearray()
        while (byte := self._back.read(1)) != b"\0":
            if not byte:
                raise RuntimeError("the browser has ended")
            content += byte
        message: dict[str, Any] = json.loads(content)
        match message:
            case {"method": "Runtime.exceptionThrown", "params": {"exceptionDetails": details}}:
                self.errors.append(str(details.get("exception", details).get("description", details)))
            case {"method": "Log.entryAdded", "params": {"entry": {"level": "error", "text": text}}}:
                self.errors.append(text)
            case {"method": "Runtime.consoleAPICalled", "params": {"type": "error", "args": arguments}}:
                self.errors.append(str(arguments))
            case {"method": "Network.requestWillBeSent", "params": {"request": {"url": url}}}:
                self.requests.append(url)
        return message

    def run(self, script: str) -> Any:
        """The value of an expression in the page, awaited if it is a promise."""
        answer = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", answer))
        return answer["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until an expression is true. It is evaluated whenever the document changes."""
        self.run(
            f"""new Promise((resolve, reject) => {{
                const watch = new MutationObserver(check);
                const late = setTimeout(() => reject(new Error(document.body.innerText)), 60000);
                function check() {{
                    if (!({condition})) return;
                    document.removeEventListener("readystatechange", check);
                    watch.disconnect();
                    clearTimeout(late);
                    resolve();
                }}
                document.addEventListener("readystatechange", check);
                watch.observe(document, {{ subtree: true, childList: true, attributes: true, characterData: true }});
                check();
            }})"""
        )

    def open(self, url: str) -> None:
        """Load a URL, and wait until the page is complete."""
        self.send("Page.navigate", url="about:blank")  # else a URL that differs only after # would not be loaded
        self.until("location.href === 'about:blank'")
        self.send("Page.navigate", url=url)
        loaded = f"location.href.startsWith({json.dumps(url)}) && document.readyState === 'complete'"
        try:
            self.until(loaded)
        except Navigated:  # the expression was evaluated in the previous page
            self.until(loaded)

    def size(self, width: int, height: int, dark: bool = False) -> None:
        """Set the size of the window in pixels, and its theme."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def press(self, key: str) -> None:
        """Press a key, by its DOM name."""
        text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
        codes = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        code = {"windowsVirtualKeyCode": codes[key]} if key in codes else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, **text, **code)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, **code)

    def type(self, text: str) -> None:
        """Type text into the focused element."""
        self.send("Input.insertText", text=text)

    def picture(self, path: Path, whole: bool = False, clip: dict[str, float] | None = None) -> None:
        """Write the window, the whole page, or a part of the window as PNG."""
        part = {} if clip is None else {"clip": clip}
        taken = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **part)
        path.write_bytes(base64.b64decode(taken["data"]))

    def close(self) -> None:
        """End the browser."""
        self._session = None
        self.send("Browser.close")
        self._to.close()
        self._back.close()


@contextmanager
def page(folder: Path) -> Iterator[Page]:
    """A tab of a browser that stores its files in `folder`, and ends with the block."""
    path = chromium()
    assert path is not None
    commands, to = os.pipe()
    back, answers = os.pipe()
    shell = f'exec "$@" 3<&{commands} 4>&{answers}'  # file descriptors of the protocol
    process = subprocess.Popen(
        ["bash", "-c", shell, "bash", path, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
        pass_fds=(commands, answers),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(commands)
    os.close(answers)
    try:
        tab = Page(to, back)
        yield tab
        tab.close()
        process.wait(30)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
