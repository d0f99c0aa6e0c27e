#!/usr/bin/python
"""Ansible module: pins a hub repository's files, sizes and hashes in a manifest beside the model."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pinned_manifest import keep_manifest
from ansible.module_utils.provision_error import exit_with

DOCUMENTATION = r"""
module: hub_manifest
short_description: Pin the files of a model repository in a manifest
description:
  - Asks a hub which files a repository has at a revision, and writes their names, sizes and hashes to
    C(<dest>/.ddtree/manifest.json). M(aria2_fetch) fetches what that manifest names.
  - A branch such as C(main) is resolved to a commit once. The manifest pins that commit, and later runs use it without
    asking the hub, until O(refresh=true).
requirements:
  - huggingface_hub >= 1.18 (only where the hub has to be asked)
options:
  repo_id:
    description: Repository, written C(org/name).
    type: str
    required: true
  revision:
    description: Branch, tag, or a full 40-digit commit.
    type: str
    default: main
  endpoint:
    description: Address of the hub or of a mirror that answers like one.
    type: str
    default: https://huggingface.co
  token:
    description:
      - Access token for private and gated repositories. It is sent to O(endpoint) alone and written nowhere.
      - Without it no token is used, not even one that lies in the user's home.
    type: str
  dest:
    description: The model folder.
    type: path
    required: true
  allow_patterns:
    description: Only files that match one of these shell globs; C(*) also matches C(/). Empty means all.
    type: list
    elements: str
    default: []
  deny_patterns:
    description: Leave out files that match one of these shell globs.
    type: list
    elements: str
    default: []
  refresh:
    description: Ask the hub even where a manifest is there; a revision that has moved replaces it.
    type: bool
    default: false
  timeout_s:
    description: Longest wait in seconds for one answer of the hub.
    type: int
    default: 30
  rate_limit_wait_s:
    description: Longest time in seconds spent waiting for a rate limit to lift.
    type: int
    default: 900
attributes:
  check_mode:
    support: full
    description: Asks the hub where a real run would, writes nothing, and returns the manifest as it would be.
  diff_mode:
    support: full
author:
  - The ddtree-infra project
"""

EXAMPLES = r"""
- name: Pin the model
  hub_manifest:
    repo_id: org/name
    dest: /srv/models/org/name
    deny_patterns: ["*.md", "figures/*"]
    token: "{{ lookup('ansible.builtin.env', 'HF_TOKEN') }}"

- name: Move to the newest commit of main
  hub_manifest:
    repo_id: org/name
    dest: /srv/models/org/name
    refresh: true
"""

RETURN = r"""
manifest_path:
  description: Path of the manifest.
  returned: success
  type: str
manifest:
  description: The manifest itself; in check mode as it would be written.
  returned: success
  type: dict
commit:
  description: The pinned commit.
  returned: success
  type: str
previous_commit:
  description: The commit that was pinned before, or null.
  returned: success
  type: str
digest:
  description: sha-256 over the list of paths, sizes and hashes. Equal digests mean equal content.
  returned: success
  type: str
total_bytes:
  description: Sum of the files' sizes.
  returned: success
  type: int
file_count:
  description: Number of files.
  returned: success
  type: int
"""


def main():
    module = AnsibleModule(
        argument_spec={
            "repo_id": {"type": "str", "required": True},
            "revision": {"type": "str", "default": "main"},
            "endpoint": {"type": "str", "default": "https://huggingface.co"},
            "token": {"type": "str", "no_log": True},
            "dest": {"type": "path", "required": True},
            "allow_patterns": {"type": "list", "elements": "str", "default": []},
            "deny_patterns": {"type": "list", "elements": "str", "default": []},
            "refresh": {"type": "bool", "default": False},
            "timeout_s": {"type": "int", "default": 30},
            "rate_limit_wait_s": {"type": "int", "default": 900},
        },
        supports_check_mode=True,
    )
    exit_with(module, lambda module: keep_manifest(module.params, module.check_mode))


if __name__ == "__main__":
    main()
