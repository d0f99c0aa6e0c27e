#!/usr/bin/python3
"""Do processes that a real systemd starts receive the very strings a unit was rendered from? Standard library only.

    python3 roundtrip.py --generate cases.json [--count 60] [--seed 1]
        on the controller: random argvs and environments, and their units
    python3 roundtrip.py --run cases.json
        on a node, as root: start the units, compare, remove them

Exit status: 0 all equal, 1 the first difference is printed, 2 it could not be tried.
"""

import argparse
import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

RENDERER = Path(__file__).resolve().parent / ".." / ".." / "module_utils" / "unit_file.py"
WORK_FOLDER = Path("/run/ddtree-roundtrip")
COMMANDS_PER_UNIT = 5
# Writes what the kernel handed over, untouched by any decoding: argv after the output's name, and the environment.
STUB = """#!/bin/sh
cat /proc/$$/cmdline > "$1.argv"
cat /proc/$$/environ > "$1.environ"
"""
PIECES = [
    '"', "'", "\\", "%", "%%", "%h", "%i", "$", "$$", "${HOME}", "$HOME", ";", "#", "=", ",", "\\n", "\\x41", "\\;",
    " ", "  ", "\t", "\r", "\x01", "\x1b", "\x7f", "\x85", "\u2028", "\u00a0", "ü", "日本語", "🙂",
    '{"a":["b"]}', '{"rope": "it\'s 50% of $5", "path": "C:\\\\dir"}', "~", "*", "`id`", "$(id)",
    "-", "--flag", "@", ":", "!", "+", "|", "&", "<", ">", "[x]", "a", "Z", "0", "/", ".",
]  # fmt: skip


def random_text(source: random.Random) -> str:
    """A string a process can receive and that is valid UTF-8 for systemd."""
    pieces = []
    for _ in range(source.choice((0, 1, 1, 2, 3, 6))):
        code = source.choice((source.randrange(1, 0x80), source.randrange(1, 0x3000), source.randrange(1, 0x110000)))
        valid = (
            code != 0x0A and not 0xD800 <= code < 0xE000 and not 0xFDD0 <= code <= 0xFDEF and code & 0xFFFE != 0xFFFE
        )
        pieces.append(chr(code) if valid and source.random() < 0.4 else source.choice(PIECES))
    return "".join(pieces)


def generate(path: Path, count: int, seed: int, renderer: Path) -> None:
    """Writes `count` cases and the rendered units, so that the node needs neither the renderer nor a library."""
    spec = importlib.util.spec_from_file_location("unit_file", renderer)
    unit_file = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(unit_file)
    source = random.Random(seed)
    units = []
    for first in range(0, count, COMMANDS_PER_UNIT):
        environment = {f"T_{index}": random_text(source) for index in range(source.randrange(5))}
        commands = []
        for index in range(first, min(first + COMMANDS_PER_UNIT, count)):
            arguments = [random_text(source) for _ in range(source.randrange(7))]
            commands.append({"output": str(WORK_FOLDER / str(index)), "arguments": arguments})
        argvs = [[str(WORK_FOLDER / "stub"), command["output"], *command["arguments"]] for command in commands]
        text = unit_file.render({"Service": {"Type": "oneshot", "ExecStart": argvs}}, environment=environment)
        units.append(
            {
                "name": f"ddtree-roundtrip-{first}.service",
                "text": text,
                "environment": environment,
                "commands": commands,
            }
        )
    path.write_text(json.dumps({"seed": seed, "units": units}))


def strings(path: str) -> list[bytes]:
    return Path(path).read_bytes().split(b"\0")[:-1]


def difference(unit: dict) -> str | None:
    """The first string of a unit that its processes did not receive as it was given, or None."""
    for command in unit["commands"]:
        try:
            # The stub is a script: the interpreter and the script's name come first.
            received = strings(command["output"] + ".argv")[3:]
            environment = dict(item.split(b"=", 1) for item in strings(command["output"] + ".environ"))
        except FileNotFoundError:
            return f"{unit['name']}: a command did not run: {command}"
        expected = [argument.encode() for argument in command["arguments"]]
        if received != expected:
            return f"{unit['name']}: argv\n  given    {expected}\n  received {received}"
        for name, value in unit["environment"].items():
            if environment.get(name.encode()) != value.encode():
                return (
                    f"{unit['name']}: {name}\n  given    {value.encode()}\n  received {environment.get(name.encode())}"
                )
        unknown = [name for name in environment if name.startswith(b"T_") and name.decode() not in unit["environment"]]
        if unknown:
            return f"{unit['name']}: variables nobody gave: {unknown}"
    return None


def systemctl(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(["systemctl", *arguments], capture_output=True, text=True, check=False)


def run(path: Path, folder: Path) -> int:
    """Starts every unit from `folder`, compares, and takes everything away again."""
    if os.geteuid() != 0 or not os.path.isdir("/run/systemd/system"):
        print("needs root and a running systemd")
        return 2
    units = json.loads(path.read_text())["units"]
    folder.mkdir(parents=True, exist_ok=True)
    WORK_FOLDER.mkdir(exist_ok=True)
    stub = WORK_FOLDER / "stub"
    stub.write_text(STUB)
    stub.chmod(0o755)
    try:
        for unit in units:
            (folder / unit["name"]).write_text(unit["text"], newline="")
        systemctl("daemon-reload")
        for unit in units:
            started = systemctl("start", unit["name"])
            found = difference(unit) or (f"{unit['name']}: {started.stderr}" if started.returncode else None)
            if found:
                print(found, unit["text"], sep="\n")
                return 1
    finally:
        for unit in units:
            (folder / unit["name"]).unlink(missing_ok=True)
        systemctl("daemon-reload")
        systemctl("reset-failed", "ddtree-roundtrip-*")
        shutil.rmtree(WORK_FOLDER, ignore_errors=True)
    print(f"{sum(len(unit['commands']) for unit in units)} argvs and {len(units)} environments arrived unchanged")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--generate", type=Path, metavar="FILE")
    action.add_argument("--run", type=Path, metavar="FILE")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--renderer", type=Path, default=RENDERER)
    parser.add_argument("--unit-folder", type=Path, default=Path("/run/systemd/system"))
    arguments = parser.parse_args()
    if arguments.generate:
        generate(arguments.generate, arguments.count, arguments.seed, arguments.renderer)
        return 0
    return run(arguments.run, arguments.unit_folder)


if __name__ == "__main__":
    sys.exit(main())
