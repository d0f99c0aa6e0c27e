"""Every kind of place resolves: its play parses with its inventory, and the command line comes out as meant."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
PLACES = ("local", "b300", "pro6000")


def ansible(*command: str) -> str:
    """Runs one of ansible's programs in the repository; a failure shows all that it printed."""
    environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg")}
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("place", PLACES)
def test_the_play_of_a_place_parses(place):
    assert f"playbook: playbooks/{place}.yml" in ansible(
        "ansible-playbook", "--syntax-check", "-i", f"inventories/{place}", f"playbooks/{place}.yml"
    )


def launch_argv(place: str, tmp_path: Path) -> list[str]:
    """The command that the serve role would run: wiring and role variables as Ansible resolves them, on no host."""
    play = {
        "hosts": "nodes",
        "gather_facts": False,
        "vars_files": [
            str(REPOSITORY / "roles" / "serve" / "defaults" / "main.yml"),
            str(REPOSITORY / "playbooks" / "group_vars" / "all.yml"),
            str(REPOSITORY / "inventories" / place / "group_vars" / "nodes.yml"),
            str(REPOSITORY / "roles" / "serve" / "vars" / "main.yml"),
        ],
        "tasks": [
            {
                "delegate_to": "localhost",
                "connection": "local",
                "ansible.builtin.copy": {
                    "content": "{{ __serve_argv | to_json }}",
                    "dest": str(tmp_path / "argv.json"),
                },
                "vars": {"ansible_python_interpreter": sys.executable},
            }
        ],
    }
    (tmp_path / "play.json").write_text(json.dumps([play]))
    ansible(
        "ansible-playbook", "-i", f"inventories/{place}", "-e", "ddtree_host=192.0.2.1", str(tmp_path / "play.json")
    )
    return json.loads((tmp_path / "argv.json").read_text())


def test_the_local_command(tmp_path):
    argv = launch_argv("local", tmp_path)
    models = Path(argv[0]).parents[2] / "models"
    assert argv[1:] == shlex.split(
        f"serve --model {models}/HuggingFaceTB/SmolLM2-135M-Instruct --host 127.0.0.1 --port 8000 --dtype float32 "
        "--served-model-name SmolLM2-135M-Instruct --mode tree "
        f"--drafter {models}/ddtree-infra/SmolLM2-135M-Instruct-DFlash"
    )


@pytest.mark.parametrize(("place", "parallel"), [("b300", ""), ("pro6000", "--ep-size 8 ")])
def test_the_commands_of_gpu_nodes(place, parallel, tmp_path):
    assert launch_argv(place, tmp_path) == shlex.split(
        "/opt/ddtree/venv/bin/python -m sglang.launch_server --model-path /opt/ddtree/models/moonshotai/Kimi-K2.6 "
        "--host 0.0.0.0 --port 30000 --tp-size 8 --attention-backend triton --page-size 1 --mem-fraction-static 0.85 "
        f"--enable-metrics --skip-server-warmup --served-model-name Kimi-K2.6 {parallel}--trust-remote-code "
        "--cuda-graph-bs-decode 1 2 4 8 16 32 64 --tool-call-parser kimi_k2 --reasoning-parser kimi_k2 "
        "--speculative-algorithm DFLASH --speculative-draft-model-path /opt/ddtree/models/z-lab/Kimi-K2.6-DFlash "
        "--speculative-draft-attention-backend triton"
    )
