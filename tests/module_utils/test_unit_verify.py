"""Which lines of systemd-analyze count against a unit; the lines were printed by systemd 252."""

import shutil

import pytest
from ansible.module_utils.unit_verify import classify, unit_faults

UNKNOWN_KEY = "ddtree.service:3: Unknown key 'Foo' in section [Service], ignoring."
MISSING = "ddtree.service: Command /opt/ddtree/venv/bin/ddtree is not executable: No such file or directory"
DROP_IN = "/etc/systemd/system/ddtree.service.d/x.conf:2: Unknown key 'Bar' in section [Service], ignoring."
FOREIGN = "/lib/systemd/system/other.service:7: Unit uses KillMode=none. This is unsafe."
FOREIGN_UNIT = "other.service: Command /usr/bin/other is not executable: No such file or directory"
REFUSED = "Unit ddtree.service has a bad unit file setting."


@pytest.mark.parametrize(
    ("output", "returncode", "faults", "missing"),
    [
        ([], 0, [], []),
        ([UNKNOWN_KEY], 0, [UNKNOWN_KEY], []),
        ([MISSING], 1, [], [MISSING]),
        ([DROP_IN, REFUSED], 1, [DROP_IN, REFUSED], []),
        ([FOREIGN, FOREIGN_UNIT], 0, [], []),
        ([FOREIGN, UNKNOWN_KEY], 1, [UNKNOWN_KEY], []),
        # A refusal is never swallowed, whatever it names.
        ([FOREIGN], 1, [FOREIGN], []),
        ([], 1, ["systemd-analyze exits 1 without a word"], []),
        (["Something nobody has seen before"], 0, ["Something nobody has seen before"], []),
    ],
)
def test_lines(output, returncode, faults, missing):
    assert classify("ddtree.service", "\n".join(output), returncode) == (faults, missing)


def test_an_instance_of_a_template_is_the_template():
    line = "ddtree@i.service: Unit configuration has fatal error, unit will not be started."
    assert classify("ddtree@.service", line, 1) == ([line], [])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize(
    ("service", "fault"),
    [
        ("ExecStart=/bin/true", None),
        ("ExecStart=/bin/true\nFoo=bar", "ddtree.service:3: Unknown key 'Foo'"),
        ('ExecStart=/bin/true\nEnvironment="A B=1"', "Invalid environment assignment"),
        ("ExecStart=/bin/true\nLimitNOFILE=many", "many"),
        ("ExecStart=/bin/true %x", "specifiers"),
        ("Type=simple", "no ExecStart="),
    ],
)
def test_the_real_systemd_analyze(service, fault):
    faults, missing = unit_faults("ddtree.service", f"[Service]\n{service}\n")
    assert missing == []
    assert faults == [] if fault is None else fault in " ".join(faults)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_a_program_that_is_not_there():
    faults, missing = unit_faults("ddtree.service", "[Service]\nExecStart=/nowhere/ddtree serve\n")
    assert faults == []
    assert len(missing) == 1
    assert "/nowhere/ddtree" in missing[0]
