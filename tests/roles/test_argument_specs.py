"""Every role says what it takes: defaults and argument specs agree, names carry the prefix, wiring is real."""

import re
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
ROLES = sorted(path.name for path in (REPOSITORY / "roles").iterdir())


def load(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8")) or {}


def options(role: str) -> dict:
    return load(REPOSITORY / "roles" / role / "meta" / "argument_specs.yml")["argument_specs"]["main"]["options"]


def defaults(role: str) -> dict:
    path = REPOSITORY / "roles" / role / "defaults" / "main.yml"
    return load(path) if path.exists() else {}


@pytest.mark.parametrize("role", ROLES)
def test_defaults_and_argument_specs_agree(role):
    specified = {name: option["default"] for name, option in options(role).items() if "default" in option}
    assert specified == defaults(role)


@pytest.mark.parametrize("role", ROLES)
def test_an_option_without_a_default_is_required(role):
    assert [
        name for name, option in options(role).items() if ("default" in option) == option.get("required", False)
    ] == []


@pytest.mark.parametrize("role", ROLES)
def test_public_names_carry_the_role_and_private_ones_two_underscores(role):
    assert [name for name in options(role) if not name.startswith(f"{role}_")] == []
    private = (
        load(REPOSITORY / "roles" / role / "vars" / "main.yml")
        if (REPOSITORY / "roles" / role / "vars").exists()
        else {}
    )
    assert [name for name in private if not name.startswith(f"__{role}_")] == []


@pytest.mark.parametrize("role", ROLES)
def test_every_entry_point_has_a_spec(role):
    specs = load(REPOSITORY / "roles" / role / "meta" / "argument_specs.yml")["argument_specs"]
    tasks = REPOSITORY / "roles" / role / "tasks"
    assert [entry for entry in specs if not (tasks / f"{entry}.yml").exists()] == []


@pytest.mark.parametrize("role", ROLES)
def test_no_role_reads_another_roles_private_variable(role):
    others = "|".join(name for name in ROLES if name != role)
    for path in (REPOSITORY / "roles" / role).rglob("*.yml"):
        assert re.findall(rf"\b__(?:{others})_\w+", path.read_text(encoding="utf-8")) == [], path


def known_variables() -> set[str]:
    wiring = load(REPOSITORY / "playbooks" / "group_vars" / "all.yml")
    return {name for name in wiring if name.startswith("ddtree_")} | {name for role in ROLES for name in options(role)}


@pytest.mark.parametrize(
    "path",
    [
        *sorted((REPOSITORY / "inventories").glob("*/group_vars/*.yml")),
        REPOSITORY / "playbooks" / "group_vars" / "all.yml",
    ],
    ids=lambda path: str(path.relative_to(REPOSITORY)),
)
def test_inventories_set_only_variables_that_something_reads(path):
    assert [name for name in load(path) if name not in known_variables()] == []


def test_wiring_reads_only_variables_that_exist():
    text = (REPOSITORY / "playbooks" / "group_vars" / "all.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"\bddtree_[a-z_]+\b(?!/)", text)) - known_variables() == set()
