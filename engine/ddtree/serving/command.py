"""`ddtree serve`: the OpenAI-compatible server of the embedded engine."""

import argparse
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ddtree.errors import UserError
from ddtree.runtime.options import add_engine_options, apply_threads, engine_config
from ddtree.runtime.types import MODES, EngineConfig
from ddtree.runtime.validation import check_engine_config
from ddtree.serving.settings import ServingSettings

if TYPE_CHECKING:
    from ddtree.runtime.engine import Engine

DESCRIPTION = """\
Serves one model over OpenAI's HTTP API: /v1/models, /v1/completions, /v1/chat/completions; also /health and /metrics.

The port opens at once. /health answers 503 while the model loads, and 200 after a self-check has generated a few
tokens. If the model cannot be loaded, the process says why and exits with status 2. One request is generated at a
time, the others wait in a queue. SIGTERM or Ctrl-C: the running request gets --drain-seconds, then the process exits
with status 0.
"""

EXAMPLES = """\
examples:
  Plain decoding, no drafter:
    ddtree serve --model models/SmolLM2-135M-Instruct
  Tree-speculative decoding, 32 drafted tokens a step:
    ddtree serve --model models/SmolLM2-135M-Instruct --drafter models/smollm2-135m-dflash --budget 32
  Ask it:
    curl http://127.0.0.1:8000/v1/chat/completions -H 'Content-Type: application/json' \\
      -d '{"model": "SmolLM2-135M-Instruct", "messages": [{"role": "user", "content": "Name three colours."}]}'
  The same prompt without speculation, to compare the `ddtree` object of the two replies:
    … -d '{…, "temperature": 0, "ddtree": {"mode": "ar"}}'
"""


def _number(kind: type, check: Callable[[float], bool], what: str) -> Callable[[str], float]:
    """An argparse type: a number that passes the check, or a message that says what it should have been."""

    def parse(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not check(value):
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return value

    return parse


_not_negative = _number(int, lambda value: value >= 0, "an integer of at least 0")
_port = _number(int, lambda value: 0 <= value <= 65535, "a port number (0 to 65535)")
_seconds = _number(float, lambda value: 0 <= value < 1e9, "a number of seconds")
_temperature = _number(float, lambda value: 0 <= value <= 2, "a temperature (0 to 2)")


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser(
        "serve",
        help="serve a model over OpenAI's HTTP API",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_engine_options(parser, drafter_required=False)
    decoding = parser.add_argument_group("decoding", 'a request may choose another mode: {"ddtree": {"mode": …}}')
    decoding.add_argument(
        "--mode",
        choices=MODES,
        help="ar: plain decoding; chain: DFlash, one drafted path; tree: DDTree (default: tree, without a drafter ar)",
    )
    decoding.add_argument(
        "--temperature",
        type=_temperature,
        default=ServingSettings.default_temperature,
        metavar="T",
        help="where a request names none (%(default)s)",
    )

    server = parser.add_argument_group("server")
    server.add_argument(
        "--served-model-name", metavar="NAME", help="what requests must name (default: the folder's name)"
    )
    server.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s: this machine only)")
    server.add_argument("--port", type=_port, default=8000, help="0: any free one (%(default)s)")
    server.add_argument(
        "--api-key-file", type=Path, metavar="FILE", help="demand this key, except of /health, /metrics"
    )
    server.add_argument(
        "--max-queue",
        type=_not_negative,
        default=ServingSettings.max_queue,
        metavar="N",
        help="requests that may wait; more get 503 (%(default)s)",
    )
    server.add_argument(
        "--drain-seconds", type=_seconds, default=ServingSettings.drain_s, metavar="S", help="see above (%(default)s)"
    )
    server.add_argument(
        "--stall-seconds",
        type=_seconds,
        default=ServingSettings.stall_s,
        metavar="S",
        help="/health answers 503 when a request makes no progress for so long (%(default)s)",
    )
    server.add_argument("--access-log", action="store_true", help="log every HTTP request, not only the generations")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serves until it is told to stop. Returns 0; raises UserError for what the caller can fix."""
    from ddtree.serving.authentication import read_api_key
    from ddtree.serving.listener import open_port

    if not (args.model / "config.json").is_file():
        raise UserError(f"--model {args.model}: no config.json there; name the folder of a downloaded model")
    mode = args.mode or ("tree" if args.drafter else "ar")
    if mode != "ar" and args.drafter is None:
        raise UserError(f"--mode {mode} needs a drafter; add --drafter DIR or choose --mode ar")
    config = engine_config(args, mode)
    check_engine_config(config)
    api_key = read_api_key(args.api_key_file) if args.api_key_file else None
    listener = open_port(args.host, args.port)  # the slow imports come after it

    from ddtree.serving.server import build_server

    settings = ServingSettings(
        model_name=args.served_model_name or _folder_name(args.model),
        modes=MODES if args.drafter else ("ar",),
        default_mode=mode,
        default_temperature=args.temperature,
        max_queue=args.max_queue,
        drain_s=args.drain_seconds,
        stall_s=args.stall_seconds,
        api_key=api_key,
        access_log=args.access_log,
    )
    _configure_logging()
    server = build_server(settings, listener, lambda: _load(config, args), _build_labels(config))
    if not server.run():
        # The engine's thread sits in a long prefill or in loading; torch may crash when Python ends under it.
        logging.shutdown()
        os._exit(0)
    return 0


def _load(config: EngineConfig, args: argparse.Namespace) -> "Engine":
    from ddtree.runtime.engine import Engine

    apply_threads(args)
    return Engine.load(config)


def _build_labels(config: EngineConfig) -> dict[str, str]:
    return {
        "drafter": _folder_name(config.drafter_path) if config.drafter_path else "",
        "mode": config.mode,
        "budget": str(config.budget),
        "topk": str(config.topk),
        "dtype": config.dtype,
        "device": config.device,
    }


def _folder_name(folder: Path) -> str:
    """Its own name, also of "." and of a link, which says more than the name of the folder behind it."""
    return Path(os.path.abspath(folder)).name


def _configure_logging() -> None:
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO, stream=sys.stderr)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # its starting and stopping, told better by ours
