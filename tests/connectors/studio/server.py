"""A Label Studio server: found where it is installed, else installed, and started over a folder of its own.

`python -m tests.connectors.studio.server` installs it into `.venv-label-studio` and says where it is.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

PASSWORD = "a password for tests"
OWN = Path(__file__).parents[3] / ".venv-label-studio" / "bin" / "label-studio"
"""Where `make soak` installs it, in an environment of its own: it brings a hundred packages."""
_NAMED = "EVENHAND_LABEL_STUDIO"
_START_SECONDS = 600


def installed() -> Path | None:
    """The program `label-studio`: as EVENHAND_LABEL_STUDIO names it, where `make soak` installs it, or on the path."""
    if named := os.environ.get(_NAMED):
        if not Path(named).is_file():
            raise SystemExit(f"{_NAMED} names {named!r}, which is no program: give the path of label-studio")
        return Path(named)
    found = shutil.which("label-studio")
    return OWN if OWN.exists() else None if found is None else Path(found)


def install() -> Path:
    """The program, installed first where it is not: some minutes and a gigabyte."""
    if (found := installed()) is not None:
        return found
    print(f"installing Label Studio into {OWN.parents[1].name}: some minutes", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(OWN.parents[1])], check=True)
    pip = [str(OWN.with_name("python")), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "label-studio"], check=True)
    return OWN


def release(binary: Path) -> str:
    """Which Label Studio it is."""
    code = "from importlib.metadata import version; print(version('label-studio'))"
    python = binary.resolve().with_name("python")
    return subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True).stdout.strip()


class Server:
    """A server process over a folder of its own; started again it has the same data."""

    def __init__(self, binary: Path, folder: Path) -> None:
        self.binary, self.folder, self.key = binary, folder, secrets.token_hex(20)
        folder.mkdir(parents=True, exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start it; gives the seconds until it answers."""
        environment = {
            # a folder with a label_studio.py in it would hide the package of that name
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "LABEL_STUDIO_BASE_DATA_DIR": str(self.folder / "data"),  # else it makes empty folders in the home
            "LABEL_STUDIO_USERNAME": "lead@example.org",
            "LABEL_STUDIO_PASSWORD": PASSWORD,
            "LABEL_STUDIO_USER_TOKEN": self.key,
            "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
            "COLLECT_ANALYTICS": "false",
            "LATEST_VERSION_CHECK": "false",
            "SENTRY_DSN": "",
            "FRONTEND_SENTRY_DSN": "",
        }
        command = [str(self.binary), "start", "--no-browser", "--internal-host", "127.0.0.1", "-p", str(self.port)]
        began = time.monotonic()
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--data-dir", str(self.folder / "data")],
                env=environment, cwd=self.folder, stdout=log, stderr=log,
            )  # fmt: skip
        while time.monotonic() - began < _START_SECONDS:
            try:
                if httpx.get(f"{self.url}/health", timeout=10, trust_env=False).status_code == 200:
                    return time.monotonic() - began
            except httpx.TransportError:
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.5)
        log_end = (self.folder / "server.log").read_text(errors="replace")[-2000:]
        raise SystemExit(f"Label Studio did not start:\n{log_end}")

    def stop(self) -> None:
        """Stop it."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(60)


if __name__ == "__main__":
    print(install())
