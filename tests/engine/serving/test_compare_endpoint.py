"""`ddtree compare-endpoint` against a real server: one row a prompt and mode, and what is no such server is named."""

import http.server
import threading

import pytest

from ddtree.cli import main
from ddtree.errors import UserError
from ddtree.runtime.endpoint_comparison import compare_endpoint


def test_one_row_a_prompt_and_mode_with_the_servers_figures(served):
    runs = compare_endpoint(f"{served.url}/v1", None, {"one": "hello", "two": "the lazy dog"}, 12)
    assert [(run.prompt, run.mode) for run in runs] == [(p, m) for p in ("one", "two") for m in ("ar", "chain", "tree")]
    assert all(run.identical for run in runs)
    plain, _, tree = runs[:3]
    assert plain.tokens == tree.tokens
    assert plain.acceptance_length == pytest.approx(1.0)
    assert tree.target_forwards < plain.target_forwards == plain.tokens


def test_the_command_prints_the_table(served, capsys):
    assert main(["compare-endpoint", f"{served.url}/v1/", "--prompt", "greeting=hello", "--max-tokens", "8"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[2:]] == [["greeting", mode] for mode in ("ar", "chain", "tree")]


def test_an_unknown_model_is_refused_with_the_servers_words(served):
    with pytest.raises(UserError, match=r"404.*nosuch"):
        compare_endpoint(f"{served.url}/v1", "nosuch", {"one": "hello"}, 4)


def test_nobody_there(capsys):
    assert main(["compare-endpoint", "http://127.0.0.1:9/v1"]) == 2
    assert "is the server running there?" in capsys.readouterr().err


def test_another_server_is_named():
    class OtherServer(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            body = b'{"choices": []}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), OtherServer) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        try:
            with pytest.raises(UserError, match="not a `ddtree serve`"):
                compare_endpoint(f"http://127.0.0.1:{other.server_port}/v1", "any", {"one": "hello"}, 4)
        finally:
            other.shutdown()
