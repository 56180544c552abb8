"""A small stand-in for GitHub: runs the shell steps of the action, and answers for the API."""

from __future__ import annotations

import http.server
import json
import os
import re
import subprocess
import threading
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import yaml

ACTION = Path(__file__).parent.parent / "action.yml"
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


def action():
    """The action, as YAML has it."""
    return yaml.safe_load(ACTION.read_text(encoding="utf-8"))


def shell_steps():
    """The steps of the action that are shell scripts, by name."""
    return {step["name"]: step for step in action()["runs"]["steps"] if "run" in step}


def run_step(name, folder, inputs, environment=(), **known):
    """Run a shell step in a folder; known: what other expressions stand for."""
    step = shell_steps()[name]
    defaults = {key: value.get("default", "") for key, value in action()["inputs"].items()}
    values = {f"inputs.{key}": value for key, value in {**defaults, **inputs}.items()} | known

    def fill(text):
        return EXPRESSION.sub(lambda found: str(values.get(found[1], "")), text)

    given = {key: fill(value) for key, value in step.get("env", {}).items()}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={**os.environ, **given, **dict(environment)},
        capture_output=True,
        text=True,
        check=False,
    )


class GitHub:
    """Comments of pull requests behind a local server; requests: what was asked, in order."""

    def __init__(self, status=None):
        self.comments: list[dict] = []
        self.requests: list[str] = []
        self.status = status
        github = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                github.answer(self, "GET")

            def do_POST(self):
                github.answer(self, "POST")

            def do_PATCH(self):
                github.answer(self, "PATCH")

            def log_message(self, *arguments):
                """Say nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, handler, verb):
        """Do what the API of GitHub does for a thread of comments."""
        size = int(handler.headers.get("Content-Length") or 0)
        content = json.loads(handler.rfile.read(size)) if size else {}
        address = urlsplit(handler.path)
        self.requests.append(f"{verb} {address.path}")
        status = self.status or (201 if verb == "POST" else 200)
        handler.send_response(status)
        handler.end_headers()
        handler.wfile.write(json.dumps(self._content(verb, address, content)).encode())

    def _content(self, verb, address, content):
        if self.status:
            return {"message": "no"}
        if verb == "GET":
            query = parse_qs(address.query)
            size, page = (int(query[name][0]) for name in ("per_page", "page"))
            return self.comments[(page - 1) * size : page * size]
        if verb == "POST":
            self.comments.append({"id": len(self.comments) + 1, **content, "html_url": "there"})
            return self.comments[-1]
        [comment] = [c for c in self.comments if address.path.endswith(f"/{c['id']}")]
        comment.update(content)
        return comment
