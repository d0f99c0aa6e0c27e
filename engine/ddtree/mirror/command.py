"""`ddtree mirror`: serves model folders to hub clients."""

import argparse
import logging
import sys
from pathlib import Path

from ddtree.errors import UserError

DESCRIPTION = """\
Serves the model folders below --root with the model hub's HTTP interface, read-only: nodes without internet fetch from
a node that has the model, or from a disk. Every <root>/<org>/<name>/ is a repository with the one revision main.

Hashes and commit come from the folder's .ddtree/manifest.json where provisioning left one; otherwise every file is
hashed once (the result is kept) and the commit is a digest of the content. Files of 10 MiB and more, and *.safetensors,
*.gguf, *.bin, have a sha-256, the others a git blob sha-1, as on a hub. Not served: hidden files, unfinished downloads
(.part, .aria2, .incomplete …), links out of the root. A repository with a missing or truncated file is refused whole.
There is no authentication: listen on addresses that only your nodes reach.
"""

EXAMPLES = """\
examples:
  Serve to this machine, then fetch with the hub's own client:
    ddtree mirror --root /srv/models
    HF_ENDPOINT=http://127.0.0.1:8790 hf download HuggingFaceTB/SmolLM2-135M-Instruct --local-dir model
  Serve to the other nodes from a read-only disk:
    ddtree mirror --root /mnt/models --host 0.0.0.0 --state-dir /var/lib/ddtree-mirror
  What is there:
    curl http://127.0.0.1:8790/health
    curl 'http://127.0.0.1:8790/api/models/HuggingFaceTB/SmolLM2-135M-Instruct?blobs=true'
"""


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port number (0 to 65535)")
    return int(text)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "mirror",
        help="serve model folders to hub clients",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--root", type=Path, required=True, metavar="DIR", help="folder of the <org>/<name>/ folders")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s: this machine only)")
    parser.add_argument("--port", type=_port, default=8790, help="0: any free one (%(default)s)")
    parser.add_argument(
        "--state-dir",
        type=Path,
        metavar="DIR",
        help="where computed hashes are kept (default: a hidden folder in the root; in memory if that is read-only)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serves until it is told to stop. Returns 0; raises UserError for what the caller can fix."""
    from ddtree.mirror.catalog import Catalog
    from ddtree.serving.listener import open_port

    try:
        from ddtree.mirror.server import MirrorServer
    except ImportError as error:
        raise UserError(f"ddtree mirror needs {error.name}; install ddtree[cpu] or ddtree[controller]") from error
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO, stream=sys.stderr)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # its starting and stopping, told better by ours
    catalog = Catalog(args.root, args.state_dir)
    try:
        MirrorServer(catalog, open_port(args.host, args.port)).run()
    finally:
        catalog.close()
    return 0
