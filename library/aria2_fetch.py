#!/usr/bin/python
"""Ansible module: fetches what a model folder's manifest names, by aria2, verified and resumable."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.provision_error import exit_with
from ansible.module_utils.weights_fetch import fetch_weights

DOCUMENTATION = r"""
module: aria2_fetch
short_description: Fetch the files of a pinned model repository
description:
  - Brings a model folder to what its manifest (M(hub_manifest)) names. Files that are there and proven are skipped,
    missing and wrong ones are fetched by an aria2c of the module's own.
  - Every file is downloaded beside its final name, hashed, flushed and renamed. A wrong content never stands under a
    final name; what an interrupted run had received is resumed inside the file.
  - C(<dest>/.ddtree/receipt.json) records what was verified. A later run trusts it for files whose size, modification
    time and inode are unchanged, and asks no hub where all are.
  - C(<dest>/.ddtree/progress.json) is rewritten every second while the module runs.
  - Addresses are resolved by the module, with the token; aria2c gets none. A file that a hub serves itself, and only to
    a token, is read by the module's own client over one connection.
  - A file with a wrong content is set aside to C(<dest>/.ddtree/quarantine/) until its replacement is in place.
requirements:
  - aria2c >= 1.36 on the node
  - aria2p >= 0.12 and requests (only where something has to be fetched)
options:
  dest:
    description: The model folder, with its manifest.
    type: path
    required: true
  manifest:
    description:
      - The manifest as M(hub_manifest) returned it. Used in check mode alone, where the file may not be written yet.
    type: dict
  sources:
    description:
      - Endpoints of hubs or mirrors that serve the pinned commit. All that answer feed a file at once.
      - Empty means the endpoint in the manifest.
    type: list
    elements: str
    default: []
  token:
    description:
      - Access token. It is sent to the endpoint named in the manifest alone, by the module's own requests.
    type: str
  connections_per_file:
    description: Connections for one file.
    type: int
    default: 16
  parallel_files:
    description: Files fetched at the same time.
    type: int
    default: 6
  reserve_bytes:
    description: Space that stays free on the disk. Tested before the first byte, with the bytes still to come.
    type: int
    default: 1073741824
  lowest_speed_limit_bytes_s:
    description: A connection slower than this is ended and its file resumed; 0 switches it off.
    type: int
    default: 1024
    aliases: [lowest_speed_limit]
  timeout_s:
    description: Longest wait for a connection, and for the next byte.
    type: int
    default: 60
  rate_limit_wait_s:
    description: Longest time one file waits for a rate limit to lift.
    type: int
    default: 900
  aria2c:
    description: Name or path of the aria2c binary.
    type: str
    default: aria2c
attributes:
  check_mode:
    support: full
    description: Returns what would be fetched, asks no hub, writes nothing. Files without a receipt are hashed.
  diff_mode:
    support: full
author:
  - The ddtree-infra project
"""

EXAMPLES = r"""
- name: Fetch the model
  aria2_fetch:
    dest: /srv/models/org/name
    token: "{{ lookup('ansible.builtin.env', 'HF_TOKEN') }}"
    reserve_bytes: 10737418240

- name: Fetch from two machines that already have it
  aria2_fetch:
    dest: /srv/models/org/name
    sources: [http://node-1:8790, http://node-2:8790]
"""

RETURN = r"""
fetched_files:
  description: Files that were fetched, or in check mode would be.
  returned: always
  type: list
  elements: str
fetched_bytes:
  description: Sum of their sizes.
  returned: always
  type: int
downloaded_bytes:
  description: Bytes that came over the network for them; a resumed file counts with its remainder.
  returned: always
  type: int
seconds:
  description: Duration of fetching and verifying.
  returned: always
  type: float
mib_per_s:
  description: Downloaded MiB a second of that duration.
  returned: always
  type: float
skipped_files:
  description: Number of files that were already there and right.
  returned: always
  type: int
replaced:
  description: What was wrong with each file that was there before and has been fetched again.
  returned: always
  type: dict
extra_files:
  description: Files in the folder that the manifest does not name; they are left alone.
  returned: always
  type: list
  elements: str
commit:
  description: Commit of the manifest.
  returned: always
  type: str
digest:
  description: Digest of the manifest.
  returned: always
  type: str
"""


def main():
    module = AnsibleModule(
        argument_spec={
            "dest": {"type": "path", "required": True},
            "manifest": {"type": "dict"},
            "sources": {"type": "list", "elements": "str", "default": []},
            "token": {"type": "str", "no_log": True},
            "connections_per_file": {"type": "int", "default": 16},
            "parallel_files": {"type": "int", "default": 6},
            "reserve_bytes": {"type": "int", "default": 1073741824},
            "lowest_speed_limit_bytes_s": {"type": "int", "default": 1024, "aliases": ["lowest_speed_limit"]},
            "timeout_s": {"type": "int", "default": 60},
            "rate_limit_wait_s": {"type": "int", "default": 900},
            "aria2c": {"type": "str", "default": "aria2c"},
        },
        supports_check_mode=True,
    )
    exit_with(module, lambda module: fetch_weights(module.params, module.check_mode))


if __name__ == "__main__":
    main()
