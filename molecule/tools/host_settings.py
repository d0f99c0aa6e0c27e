#!/usr/bin/env python3
"""Prints, as JSON, what a node must take over from this machine to reach package registries as this machine does.

mirror        URL of a Debian mirror, or empty
apt_sources   lines of sources.list, or none
apt_conf      lines of apt.conf
environment   variables for pip on the node
volumes       `host path:node path:ro` for podman

Everything is read where the node is made; nothing of it is kept in the repository. Run it with the Python whose pip
configuration counts.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import certificates
import host_apt
import host_pip

PROXY_VARIABLES = ("http_proxy", "https_proxy", "no_proxy")


def collect(
    variables: Mapping[str, str], pip_settings: dict[str, str], apt_sources: list[str], apt_settings: dict, suite: str
) -> dict:
    """The document described above. variables: this machine's environment."""
    trusted = certificates.Certificates()
    environment = {
        name: value for name, value in sorted(variables.items()) if name.lower() in PROXY_VARIABLES and value
    }
    environment |= host_pip.environment(pip_settings) | certificates.environment(variables, trusted)
    if Path(pip_settings.get("cert", "")).is_file():
        environment["PIP_CERT"] = trusted.place(pip_settings["cert"])
    apt_settings = {
        key: trusted.place(value) if key.endswith("::CaInfo") else value for key, value in apt_settings.items()
    }
    if "SSL_CERT_FILE" in environment:
        # apt asks its own configuration, not the environment.
        apt_settings.setdefault("Acquire::https::CaInfo", environment["SSL_CERT_FILE"])
    mounts = [f"{path}:{path}" for path in host_pip.mounts(pip_settings)] + trusted.mounts()
    return {
        "mirror": host_apt.mirror(apt_sources, suite),
        "apt_sources": apt_sources,
        "apt_conf": [f'{key} "{value}";' for key, value in apt_settings.items()],
        "environment": environment,
        "volumes": [f"{mount}:ro" for mount in mounts],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default="bookworm", help="Debian release of the node")
    suite = parser.parse_args().suite
    settings = collect(
        os.environ, host_pip.read_settings(), host_apt.read_sources(suite), host_apt.read_settings(), suite
    )
    print(json.dumps(settings, indent=2))


if __name__ == "__main__":
    main()
