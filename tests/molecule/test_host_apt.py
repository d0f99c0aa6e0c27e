"""apt's configuration of this machine, as far as a node can use it."""

import host_apt

TARGETS = """\
http://mirror.invalid/debian/ bookworm main Debian
http://mirror.invalid/debian/ bookworm contrib Debian
http://mirror.invalid/debian/ bookworm main Debian
http://mirror.invalid/debian/ bookworm-updates main Debian
http://mirror.invalid/debian-security/ bookworm-security main Debian
http://mirror.invalid/debian/ bookworm-backports main Debian Backports
http://docker.invalid/linux/debian/ bookworm stable Docker
http://node.invalid/ nodistro main . nodistro
http://mirror.invalid/debian/ trixie main Debian
http://unknown.invalid/debian/ bookworm main $(ORIGIN)
"""


def test_only_debians_own_archives_of_the_suite_are_taken():
    lines = host_apt.parse_targets(TARGETS, "bookworm")
    assert [line.split()[2:] for line in lines] == [
        ["http://mirror.invalid/debian/", "bookworm", "main", "contrib"],
        ["http://mirror.invalid/debian/", "bookworm-updates", "main"],
        ["http://mirror.invalid/debian-security/", "bookworm-security", "main"],
    ]
    assert host_apt.mirror(lines, "bookworm") == "http://mirror.invalid/debian/"


def test_another_system_has_no_mirror():
    lines = host_apt.parse_targets("http://archive.invalid/ubuntu/ noble main Ubuntu\n", "bookworm")
    assert lines == []
    assert host_apt.mirror(lines, "bookworm") == ""


def test_ways_to_archives_are_taken_and_nothing_else():
    dump = (
        'APT::Architecture "amd64";\n'
        'Acquire::http::Proxy "http://proxy.invalid:3128/";\n'
        'Acquire::https::CaInfo "/etc/ca.pem";\n'
        'Acquire::Check-Date "false";\n'
        'Acquire::Languages:: "none";\n'
        'Acquire::Retries "3";\n'
        'Acquire::http::Proxy::other.invalid "";\n'
    )
    assert host_apt.parse_settings(dump) == {
        "Acquire::http::Proxy": "http://proxy.invalid:3128/",
        "Acquire::https::CaInfo": "/etc/ca.pem",
        "Acquire::Check-Date": "false",
        "Acquire::Retries": "3",
    }
