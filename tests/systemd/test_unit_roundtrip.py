"""A real systemd hands a process the very strings its unit was rendered from, and roundtrip.py sees when it does not.

The systemd is a private one, in namespaces of its own; molecule runs roundtrip.py on a node besides.
"""

import json
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from ansible.module_utils.unit_file import render
from hypothesis import HealthCheck, given, settings

TESTS = Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / "support"), str(TESTS / "systemd")]
from private_systemd import PrivateSystemd  # noqa: E402
from process_strings import arguments, environments  # noqa: E402
from roundtrip import STUB  # noqa: E402

ROUNDTRIP = TESTS / "systemd" / "roundtrip.py"

pytestmark = pytest.mark.systemd


@pytest.fixture(scope="module")
def systemd(tmp_path_factory):
    reason = PrivateSystemd.why_not()
    if reason:
        pytest.skip(reason)
    with PrivateSystemd(tmp_path_factory.mktemp("systemd")) as private:
        yield private


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arguments(), environments())
def test_a_process_receives_what_was_given(systemd, words, environment):
    stub = systemd.folder / "stub"
    if not stub.exists():
        stub.write_text(STUB)
        stub.chmod(0o755)
    name = f"t-{uuid.uuid4().hex}.service"
    output = systemd.folder / name
    text = render({"Service": {"Type": "oneshot"}}, [str(stub), str(output), *words], environment)
    (systemd.units / name).write_text(text, newline="")
    systemd.run("systemctl", "daemon-reload")
    systemd.run("systemctl", "start", name)
    received = Path(f"{output}.argv").read_bytes().split(b"\0")[3:-1]
    variables = Path(f"{output}.environ").read_bytes().split(b"\0")[:-1]
    (systemd.units / name).unlink()
    assert received == [word.encode() for word in words], text
    own = dict(item.split(b"=", 1) for item in variables if item.startswith(b"T_"))
    assert own == {key.encode(): value.encode() for key, value in environment.items()}, text


def roundtrip(systemd, cases: Path):
    """Runs the script inside, with nothing of the repository in reach but the two files it needs."""
    script = systemd.folder / "roundtrip.py"
    shutil.copy(ROUNDTRIP, script)
    return systemd.run("python3", "-I", str(script), "--run", str(cases), check=False)


@pytest.fixture
def cases(systemd):
    path = systemd.folder / "cases.json"
    subprocess.run(
        [sys.executable, str(ROUNDTRIP), "--generate", str(path), "--count", "60", "--seed", "7"], check=True
    )
    return path


def test_the_script_for_nodes_passes(systemd, cases):
    done = roundtrip(systemd, cases)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "60 argvs and 12 environments" in done.stdout
    assert not list(systemd.folder.glob("units/ddtree-roundtrip*"))


@pytest.mark.parametrize("spoil", ["arguments", "environment"])
def test_the_script_for_nodes_shows_the_first_difference(systemd, cases, spoil):
    data = json.loads(cases.read_text())
    unit = data["units"][3]
    if spoil == "arguments":
        unit["commands"][1]["arguments"].append("never sent")
    else:
        unit["environment"]["T_lost"] = "never set"
    cases.write_text(json.dumps(data))
    done = roundtrip(systemd, cases)
    assert done.returncode == 1
    assert unit["name"] in done.stdout
    assert "never se" in done.stdout


def test_the_script_says_why_it_cannot_run(tmp_path):
    if Path("/run/systemd/system").exists():
        pytest.skip("this machine runs systemd")
    cases = tmp_path / "cases.json"
    cases.write_text('{"units": []}')
    done = subprocess.run([sys.executable, str(ROUNDTRIP), "--run", str(cases)], capture_output=True, text=True)
    assert done.returncode == 2
    assert "running systemd" in done.stdout
