#!/usr/bin/env python3
"""Starts a program in the background and ends it again, by its own process id.

    background.py start --pid-file FILE --log FILE --ready-url URL [--timeout-s N] -- COMMAND [ARGUMENT…]
    background.py stop --pid-file FILE [--timeout-s N]

The pid file holds the process id and the process's start time, so a process that was given the same id later is never
taken for it. Prints `started`, `running`, `stopped` or `absent`.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

POLL_S = 0.1
START_TIME_FIELD = 22  # of /proc/<pid>/stat, counted from 1; in clock ticks since boot


def start_time(pid: int) -> str | None:
    """Start time of a process, None when there is none (an ended one that nobody has waited for counts as none)."""
    try:
        # The name in parentheses may hold spaces: count from behind it, where field 3 is the state.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[START_TIME_FIELD - 3]


def running_pid(pid_file: Path) -> int | None:
    """The process that the file names, if it is still that one."""
    try:
        record = json.loads(pid_file.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return record["pid"] if start_time(record["pid"]) == record["start_time"] else None


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False


def start(args: argparse.Namespace) -> int:
    if running_pid(args.pid_file) is not None and answers(args.ready_url):
        print("running")
        return 0
    if answers(args.ready_url):
        return failure(f"{args.ready_url} is answered by another program; end it, or choose another port")
    args.log.parent.mkdir(parents=True, exist_ok=True)
    with args.log.open("wb") as log:
        process = subprocess.Popen(
            args.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    args.pid_file.write_text(json.dumps({"pid": process.pid, "start_time": start_time(process.pid)}))
    deadline = time.monotonic() + args.timeout_s
    while not answers(args.ready_url):
        if process.poll() is not None:
            args.pid_file.unlink()
            return failure(f"{args.command[0]} ended with status {process.returncode}; its output:\n{tail(args.log)}")
        if time.monotonic() > deadline:
            process.kill()
            args.pid_file.unlink()
            return failure(f"{args.ready_url} did not answer in {args.timeout_s} s; output:\n{tail(args.log)}")
        time.sleep(POLL_S)
    print("started")
    return 0


def stop(args: argparse.Namespace) -> int:
    pid = running_pid(args.pid_file)
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + args.timeout_s
        while running_pid(args.pid_file) is not None:
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
            time.sleep(POLL_S)
    args.pid_file.unlink(missing_ok=True)
    print("absent" if pid is None else "stopped")
    return 0


def failure(message: str) -> int:
    print(f"background.py: {message}", file=sys.stderr)
    return 1


def tail(log: Path, lines: int = 20) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    actions = parser.add_subparsers(required=True)
    starting = actions.add_parser("start")
    starting.add_argument("--log", type=Path, required=True)
    starting.add_argument("--ready-url", required=True)
    starting.add_argument("command", nargs="+")
    starting.set_defaults(run=start)
    stopping = actions.add_parser("stop")
    stopping.set_defaults(run=stop)
    for action in (starting, stopping):
        action.add_argument("--pid-file", type=Path, required=True)
        action.add_argument("--timeout-s", type=float, default=30)
    args = parser.parse_args()
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
