"""Makes the repository's Ansible module_utils importable in tests exactly as they are on a node."""

from pathlib import Path

import ansible.module_utils

REPOSITORY = Path(__file__).resolve().parent.parent
ansible.module_utils.__path__.append(str(REPOSITORY / "module_utils"))
