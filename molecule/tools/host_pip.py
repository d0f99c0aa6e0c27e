"""This machine's pip configuration, told as environment variables and mounts that give a node the same."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Settings that name places of this machine alone; a node has its own.
LOCAL_KEYS = frozenset({"cache-dir", "log", "prefix", "python", "require-virtualenv", "root", "target", "user"})
PATH_KEYS = frozenset({"constraint", "extra-index-url", "find-links", "index-url"})
# Named by path and trusted: certificates.py gives them a place in the node.
CERTIFICATE_KEYS = frozenset({"cert", "client-cert"})
SETTING = re.compile(r"^(?P<section>[^=]+?)\.(?P<key>[A-Za-z0-9-]+)=(?P<value>['\"].*['\"])$")


def read_settings(python: str = sys.executable) -> dict[str, str]:
    """What `pip config list` says, merged as pip merges it for `pip install`. Keys without a section."""
    listing = subprocess.run([python, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True).stdout
    return parse_settings(listing)


def parse_settings(listing: str) -> dict[str, str]:
    """listing: lines `section.key='value'`; the environment (section :env:) wins over [install], that over [global]."""
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in listing.splitlines():
        found = SETTING.match(line)
        if found and found["section"] in sections:
            sections[found["section"]][found["key"]] = ast.literal_eval(found["value"])
    return {**sections["global"], **sections["install"], **sections[":env:"]}


def environment(settings: dict[str, str]) -> dict[str, str]:
    """The settings as the PIP_* variables that pip reads; lists are parted by spaces there, not by line breaks."""
    return {
        "PIP_" + key.upper().replace("-", "_"): " ".join(value.split())
        for key, value in sorted(settings.items())
        if key not in LOCAL_KEYS | CERTIFICATE_KEYS
    }


def mounts(settings: dict[str, str]) -> list[str]:
    """Files and folders of this machine that the settings name and that exist; a node needs them at the same paths."""
    words = [word for key in PATH_KEYS & settings.keys() for word in settings[key].split()]
    paths = {path for word in words if (path := local_path(word)) and path.exists()}
    # What lies within another mount is there already.
    return sorted(str(path) for path in paths if not paths & set(path.parents))


def local_path(word: str) -> Path | None:
    """The path that a word of pip's configuration names, None for an address of the network.

    A folder that is laid out as a package index (…/simple) refers to files beside itself, so its parent counts.
    """
    if word.startswith("file:"):
        path = Path(unquote(urlsplit(word).path))
        return path.parent if path.name == "simple" else path
    return Path(word) if word.startswith("/") else None
