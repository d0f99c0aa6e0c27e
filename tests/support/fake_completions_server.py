"""An OpenAI-compatible server that misbehaves on demand.

In a test: FakeServer(...). As a process: python3 fake_completions_server.py PORT [switches as JSON].

Switches
    unhealthy_for     how many times /health answers 503 before 200
    models            names of /v1/models
    completions       token | empty | hang | error | refuse | garbage
    api_key           demanded of /v1 requests when given
    status            answer of every request, when given
    dies_after_s      as a process: seconds until it ends with status 3
"""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FakeServer:
    """Serves on loopback while the context lasts; `requests` holds (method, path, Authorization) of what came."""

    def __init__(self, port=0, unhealthy_for=0, models=("demo",), completions="token", api_key=None, status=None):
        self.unhealthy_for = unhealthy_for
        self.models = list(models)
        self.completions = completions
        self.api_key = api_key
        self.status = status
        self.requests = []
        self.released = threading.Event()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            server_version = "fake"

            def do_GET(self):
                fake.answer(self)

            def do_POST(self):
                fake.answer(self)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def answer(self, handler):
        body = json.loads(handler.rfile.read(int(handler.headers.get("Content-Length") or 0)) or "{}")
        self.requests.append((handler.command, handler.path, handler.headers.get("Authorization")))
        if self.status:
            self.reply(handler, self.status, {"error": "as told"})
        elif handler.path == "/health":
            self.unhealthy_for -= 1
            self.reply(handler, 503 if self.unhealthy_for >= 0 else 200, {"status": "loading"})
        elif self.api_key and handler.headers.get("Authorization") != f"Bearer {self.api_key}":
            self.reply(handler, 401, {"error": "no"})
        elif handler.path == "/v1/models":
            self.reply(handler, 200, {"data": [{"id": name} for name in self.models]})
        elif handler.path == "/v1/completions":
            self.complete(handler, body)
        else:
            self.reply(handler, 404, {"error": "unknown path"})

    def complete(self, handler, body):
        if self.completions == "hang":
            self.released.wait(60)
        elif self.completions == "error":
            self.reply(handler, 500, {"error": "the engine is dead"})
        elif self.completions == "refuse":
            self.reply(handler, 400, {"error": "prompt too long"})
        elif self.completions == "garbage":
            self.reply(handler, 200, "this is not an answer")
        else:
            tokens = body["max_tokens"] if self.completions == "token" else 0
            self.reply(handler, 200, {"choices": [{"text": "x" * tokens}], "usage": {"completion_tokens": tokens}})

    @staticmethod
    def reply(handler, status, content):
        data = json.dumps(content).encode()
        handler.send_response(status)
        if 300 <= status < 400:
            handler.send_header("Location", "http://127.0.0.1:1/")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)


if __name__ == "__main__":
    switches = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    dies_after_s = switches.pop("dies_after_s", None)
    with FakeServer(int(sys.argv[1]), **switches):
        print("serving", flush=True)
        time.sleep(1e6 if dies_after_s is None else dies_after_s)
    print("RuntimeError: the last words of the server", flush=True)
    sys.exit(3)
