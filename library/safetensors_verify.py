#!/usr/bin/python
"""Ansible module: verifies a model folder's safetensors files, index, sizes and hashes."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.provision_error import exit_with
from ansible.module_utils.weights_verify import verify_weights

DOCUMENTATION = r"""
module: safetensors_verify
short_description: Verify the weights in a model folder
description:
  - Checks every C(.safetensors) file's header by the rules of the format, every index against the shards it names, and
    where a manifest (M(hub_manifest)) is there, every file's size and hash.
  - Reports everything that is wrong at once, one line a file, and changes nothing.
  - Reads headers with the standard library alone; no tensor is loaded.
options:
  dest:
    description: The model folder.
    type: path
    required: true
  manifest_path:
    description: The manifest; by default C(<dest>/.ddtree/manifest.json) where there is one.
    type: path
  hash:
    description:
      - V(receipt) trusts the receipt of M(aria2_fetch) for files that have not changed since, and hashes the others.
      - V(full) hashes every file of the manifest again, on all cores.
    type: str
    choices: [receipt, full]
    default: receipt
attributes:
  check_mode:
    support: full
    description: The same check. A folder that is not there yet is no failure in check mode.
  diff_mode:
    support: none
author:
  - The ddtree-infra project
"""

EXAMPLES = r"""
- name: Verify the weights before the service starts
  safetensors_verify:
    dest: /srv/models/org/name

- name: Read every byte again
  safetensors_verify:
    dest: /srv/models/org/name
    hash: full
"""

RETURN = r"""
files:
  description: Number of files in the manifest, or in the folder where there is none.
  returned: success
  type: int
safetensors_files:
  description: Number of safetensors files checked.
  returned: success
  type: int
tensors:
  description: Number of tensors in their headers.
  returned: success
  type: int
tensor_bytes:
  description: Bytes of these tensors.
  returned: success
  type: int
hashed_bytes:
  description: Bytes read for hashing.
  returned: success
  type: int
digest:
  description: Digest of the manifest, or null.
  returned: success
  type: str
seconds:
  description: Duration of the check.
  returned: success
  type: float
findings:
  description: One line for everything that is wrong.
  returned: failure
  type: list
  elements: str
broken_files:
  description: Paths, in the folder, of the files these findings are about.
  returned: failure
  type: list
  elements: str
"""


def main():
    module = AnsibleModule(
        argument_spec={
            "dest": {"type": "path", "required": True},
            "manifest_path": {"type": "path"},
            "hash": {"type": "str", "choices": ["receipt", "full"], "default": "receipt"},
        },
        supports_check_mode=True,
    )
    exit_with(module, lambda module: verify_weights(module.params, module.check_mode))


if __name__ == "__main__":
    main()
