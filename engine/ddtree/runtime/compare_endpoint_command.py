"""`ddtree compare-endpoint`: plain, chain and tree decoding side by side on a running server."""

import argparse
import sys

from ddtree.runtime.compare_command import add_prompt_options, read_prompts, report_differences

DESCRIPTION = """\
Sends each prompt to a running `ddtree serve`, greedily, in the modes ar (plain), chain (DFlash) and tree (DDTree), and
prints a table of the figures that the server reports: tokens/s without the prompt's prefill, acceptance length (the
target's own token included) and target forwards. The exit status is 1 if the three texts are not the same.
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser(
        "compare-endpoint",
        help="the same comparison on a running server",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("url", metavar="URL", help="of the API, such as http://127.0.0.1:8000/v1")
    parser.add_argument("--model", help="name of the model (default: the one that is served)")
    add_prompt_options(parser)
    parser.add_argument("--max-tokens", type=int, default=96, metavar="N", help="a prompt (%(default)s)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from ddtree.runtime.comparison import format_table
    from ddtree.runtime.endpoint_comparison import compare_endpoint
    from ddtree.runtime.progress import StatusLine

    prompts = read_prompts(args.prompt, args.prompt_file)
    with StatusLine(sys.stderr) as status:
        runs = compare_endpoint(args.url.rstrip("/"), args.model, prompts, args.max_tokens, status.show)
    print(format_table(runs))
    return 1 if report_differences(runs) else 0
