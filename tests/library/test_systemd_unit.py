"""systemd_unit writes a verified unit in one step, reloads only after a change, and predicts both in check mode."""

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from private_systemd import PrivateSystemd

needs_analyze = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
SLEEP = ["/bin/sleep", "1000"]


@pytest.fixture(scope="module")
def systemd(tmp_path_factory):
    reason = PrivateSystemd.why_not()
    if reason:
        pytest.skip(reason)
    with PrivateSystemd(tmp_path_factory.mktemp("systemd")) as private:
        yield private


@pytest.fixture
def arguments(tmp_path):
    """A unit for a folder of this test's own; no running systemd is needed without the reload."""
    return {
        "name": "ddtree.service",
        "path": str(tmp_path),
        "sections": {"Unit": {"Description": "test"}, "Service": {"Type": "simple"}},
        "argv": SLEEP,
        "owner": str(os.geteuid()),
        "group": str(os.getegid()),
        "daemon_reload": False,
    }


def without_temporary_files(folder):
    return sorted(path.name for path in folder.iterdir())


@needs_analyze
def test_first_run_second_run_and_removal(run_module, arguments, tmp_path):
    unit = tmp_path / "ddtree.service"
    predicted = run_module("systemd_unit", arguments, check=True, diff=True)
    assert predicted["changed"]
    assert not unit.exists()
    done = run_module("systemd_unit", arguments, diff=True)
    assert done["changed"]
    assert done["path"] == str(unit)
    assert done["diff"] == predicted["diff"]
    assert done["diff"]["before"] == ""
    assert done["diff"]["after"] == unit.read_text()
    assert unit.stat().st_mode & 0o7777 == 0o644
    for check in (False, True):
        assert not run_module("systemd_unit", arguments, check=check)["changed"]
    absent = {**arguments, "state": "absent"}
    assert run_module("systemd_unit", absent, check=True)["changed"]
    assert unit.exists()
    assert run_module("systemd_unit", absent)["changed"]
    assert not run_module("systemd_unit", absent)["changed"]
    assert without_temporary_files(tmp_path) == []


@needs_analyze
def test_a_mode_alone_is_a_change_that_the_diff_shows(run_module, arguments, tmp_path):
    run_module("systemd_unit", arguments)
    stricter = {**arguments, "mode": "0600"}
    assert run_module("systemd_unit", stricter, check=True)["changed"]
    done = run_module("systemd_unit", stricter, diff=True)
    assert done["changed"]
    assert "mode 0644" in done["diff"]["before_header"]
    assert "mode 0600" in done["diff"]["after_header"]
    assert (tmp_path / "ddtree.service").stat().st_mode & 0o7777 == 0o600
    assert not run_module("systemd_unit", stricter)["changed"]


@needs_analyze
def test_a_unit_with_a_fault_never_replaces_a_good_one(run_module, arguments, tmp_path):
    run_module("systemd_unit", arguments)
    good = (tmp_path / "ddtree.service").read_text()
    faulty = {**arguments, "sections": {"Service": {"Type": "simple", "KillModus": "process"}}}
    for check in (True, False):
        failed = run_module("systemd_unit", faulty, check=check)
        assert failed["failed"]
        assert "ddtree.service is not installed" in failed["msg"]
        assert "KillModus" in failed["msg"]
        assert "KillModus=process" in failed["unit_text"]
    assert (tmp_path / "ddtree.service").read_text() == good
    assert without_temporary_files(tmp_path) == ["ddtree.service"]
    assert run_module("systemd_unit", {**faulty, "verify": False})["changed"]


@needs_analyze
def test_a_missing_program_fails_but_is_only_a_warning_in_check_mode(run_module, arguments, tmp_path):
    arguments["argv"] = ["/nowhere/venv/bin/ddtree", "serve"]
    predicted = run_module("systemd_unit", arguments, check=True)
    assert predicted["changed"]
    assert "/nowhere/venv/bin/ddtree" in str(predicted["warnings"])
    failed = run_module("systemd_unit", arguments)
    assert failed["failed"]
    assert "/nowhere/venv/bin/ddtree" in failed["msg"]
    assert without_temporary_files(tmp_path) == []


@needs_analyze
def test_a_secret_in_the_environment_is_warned_of(run_module, arguments):
    arguments["environment"] = {"HF_TOKEN": "hf_x", "TOKENIZERS_PARALLELISM": "false", "DDTREE_API_KEY": "k"}
    warnings = run_module("systemd_unit", arguments)["warnings"]
    assert len(warnings) == 2
    assert "HF_TOKEN" in str(warnings[0])
    assert "EnvironmentFile" in str(warnings[0])
    assert "DDTREE_API_KEY" in str(warnings[1])


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"environment": {"PROMPT": "a\nb"}}, ["ddtree.service", "environment variable PROMPT", "newline"]),
        ({"name": "ddtree"}, ["'ddtree'", "ddtree.service"]),
        ({"mode": "rw"}, ["'rw'", "octal"]),
        ({"owner": "nobody-of-that-name"}, ["nobody-of-that-name", "create"]),
        ({"path": "/nowhere/units"}, ["/nowhere/units", "create"]),
    ],
)
def test_bad_input_gets_one_message(run_module, arguments, wrong, named):
    failed = run_module("systemd_unit", {**arguments, "verify": False, **wrong})
    assert failed["failed"]
    for part in named:
        assert part in failed["msg"]


@pytest.mark.skipif(os.path.isdir("/run/systemd/system"), reason="this machine runs systemd")
def test_without_systemd_the_alternative_is_named(run_module, arguments):
    for check in (True, False):
        failed = run_module("systemd_unit", {**arguments, "daemon_reload": True}, check=check)
        assert failed["failed"]
        assert "/run/systemd/system" in failed["msg"]
        assert "supervisor_program" in failed["msg"]
    # Taking away what is not there needs no systemd.
    assert not run_module("systemd_unit", {**arguments, "daemon_reload": True, "state": "absent"})["changed"]


@needs_analyze
def test_through_ansible_the_order_of_sections_and_keys_is_kept(run_ansible, arguments, tmp_path):
    arguments["sections"] = {
        "Unit": {"Wants": "a.target", "After": "a.target"},
        "Install": {"WantedBy": "b.target"},
        "Service": {"Type": "exec"},
    }
    assert run_ansible("systemd_unit", arguments)["changed"]
    text = (tmp_path / "ddtree.service").read_text()
    positions = [text.index(part) for part in ("[Unit]", "Wants=", "After=", "[Install]", "[Service]", "ExecStart=")]
    assert positions == sorted(positions)
    again = run_ansible("systemd_unit", arguments)
    assert not again["changed"]


@pytest.mark.systemd
class TestWithSystemd:
    @pytest.fixture
    def unit(self, systemd, run_module):
        """Runs the module inside, for a unit of systemd's own folder."""
        python = systemd.python(sys.executable)

        def run(check=False, **arguments):
            return run_module("systemd_unit", {"name": "ddtree.service", **arguments}, check=check, python=python)

        yield run
        systemd.run("systemctl", "stop", "ddtree.service", check=False)
        for left in systemd.units.glob("ddtree*"):
            left.unlink()
        systemd.run("systemctl", "daemon-reload")

    def test_a_started_service_is_what_the_unit_says(self, systemd, unit):
        sections = {
            "Service": {"LimitNOFILE": 4096, "TimeoutStopSec": "33s"},
            "Install": {"WantedBy": "multi-user.target"},
        }
        done = unit(sections=sections, argv=SLEEP, environment={"A": "50% of $HOME"})
        assert done["changed"]
        assert done["reloaded"]
        systemd.run("systemctl", "start", "ddtree.service")
        properties = systemd.properties("ddtree.service", "LimitNOFILE", "TimeoutStopUSec", "MainPID", "ActiveState")
        assert properties["ActiveState"] == "active"
        assert properties["LimitNOFILE"] == "4096"
        assert properties["TimeoutStopUSec"] == "33s"
        environ = systemd.run("cat", f"/proc/{properties['MainPID']}/environ").stdout.split("\0")
        assert "A=50% of $HOME" in environ
        again = unit(sections=sections, argv=SLEEP, environment={"A": "50% of $HOME"})
        assert not again["changed"]
        assert not again["reloaded"]
        assert systemd.properties("ddtree.service", "MainPID")["MainPID"] == properties["MainPID"]

    def test_an_interrupted_run_is_completed_by_the_next(self, systemd, unit):
        unit(sections={}, argv=SLEEP)
        systemd.run("systemctl", "start", "ddtree.service")
        changed = {"sections": {"Service": {"TimeoutStopSec": "77s"}}, "argv": SLEEP}
        unit(**changed, daemon_reload=False)
        predicted = unit(**changed, check=True)
        assert predicted["changed"]
        done = unit(**changed)
        assert done["changed"]
        assert done["reloaded"]
        assert systemd.properties("ddtree.service", "TimeoutStopUSec")["TimeoutStopUSec"] == "1min 17s"
        assert not unit(**changed)["changed"]

    def test_a_fault_in_a_drop_in_counts(self, systemd, unit):
        folder = systemd.units / "ddtree.service.d"
        folder.mkdir()
        (folder / "x.conf").write_text("[Service]\nBar=1\n")
        failed = unit(sections={}, argv=SLEEP)
        shutil.rmtree(folder)
        assert failed["failed"]
        assert "ddtree.service.d/x.conf:2" in failed["msg"]

    def test_a_masked_unit_is_not_unmasked_silently(self, systemd, unit):
        (systemd.units / "ddtree.service").symlink_to("/dev/null")
        failed = unit(sections={}, argv=SLEEP)
        assert failed["failed"]
        assert "systemctl unmask ddtree.service" in failed["msg"]
        assert not unit(state="absent")["changed"]

    def test_removal_reloads(self, systemd, unit):
        unit(sections={}, argv=SLEEP)
        done = unit(state="absent")
        assert done["changed"]
        assert done["reloaded"]
        assert systemd.properties("ddtree.service", "LoadState")["LoadState"] == "not-found"
        assert not unit(state="absent")["changed"]
