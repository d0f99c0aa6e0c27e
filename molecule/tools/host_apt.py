"""This machine's apt configuration, as far as a Debian node can use it: where packages come from, and through what."""

import re
import subprocess

FORMAT = "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)"
DEBIAN_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Proxies, limits and time checks; not the lists of what to download, which the node decides.
SETTING = re.compile(r'^(?P<key>Acquire::(?:(?:http|https)::\S+|Retries|ForceIPv[46]|Check-\S+)) "(?P<value>.+)";$')


def read_sources(suite: str) -> list[str]:
    """Lines for sources.list: this machine's Debian archives of the suite; none on another system."""
    command = ["apt-get", "indextargets", "--format", FORMAT, "Identifier: Packages"]
    return parse_targets(output(command), suite)


def parse_targets(listing: str, suite: str) -> list[str]:
    """listing: lines `uri release component origin`. Keeps Debian's own archives of the suite, -updates and -security.

    The origin is known once the lists were fetched (apt-get update); until then nothing counts as Debian's.
    """
    archives: dict[tuple[str, str], list[str]] = {}
    for line in listing.splitlines():
        uri, release, component, origin = line.split(maxsplit=3)
        if origin == "Debian" and release in (suite, f"{suite}-updates", f"{suite}-security"):
            components = archives.setdefault((uri, release), [])
            if component not in components:
                components.append(component)
    return [
        f"deb [signed-by={DEBIAN_KEYRING}] {uri} {release} {' '.join(components)}"
        for (uri, release), components in archives.items()
    ]


def mirror(sources: list[str], suite: str) -> str:
    """URL of the archive of the suite itself, empty where the sources name none."""
    return next((line.split()[2] for line in sources if line.split()[3] == suite), "")


def read_settings() -> dict[str, str]:
    """Options of apt.conf that say how archives are reached."""
    return parse_settings(output(["apt-config", "dump"]))


def parse_settings(dump: str) -> dict[str, str]:
    """dump: what `apt-config dump` prints, lines `Key "value";`."""
    return {found["key"]: found["value"] for line in dump.splitlines() if (found := SETTING.match(line))}


def output(command: list[str]) -> str:
    """What the command prints; nothing where this machine has no apt."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        return ""
