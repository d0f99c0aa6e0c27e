"""Command line of the package: `ddtree <subcommand>`; each subpackage brings its own parser and runs lazily."""

import argparse
import importlib
import os
import sys

from ddtree import __version__
from ddtree.errors import UserError

# Modules with add_parser(subparsers); importing them is cheap, torch is imported only by the subcommand that runs.
COMMAND_MODULES = (
    "ddtree.serving.command",
    "ddtree.runtime.generate_command",
    "ddtree.runtime.compare_command",
    "ddtree.runtime.compare_endpoint_command",
    "ddtree.mirror.command",
    "ddtree.demo.command",
    "ddtree.doctor",
)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ddtree", description=__doc__.split(":")[0])
    parser.add_argument("--version", action="version", version=f"ddtree {__version__}")
    subparsers = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND", required=True)
    for name in COMMAND_MODULES:
        importlib.import_module(name).add_parser(subparsers)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Runs one subcommand. Returns its exit status: 0 done, 2 user error, 130 interrupted."""
    args = build_parser().parse_args(argv)
    # torch's threads spin while they wait for one another. With fewer free cores than threads that is a stand-still:
    # 32 tokens took over 200 s beside another two-thread process on two cores, and 6 s when the threads sleep instead.
    # GNU OpenMP reads this when torch loads it.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        return args.run(args)
    except UserError as error:
        print(f"ddtree: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("ddtree: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
