"""The two failures that a module reports as a message, and the one place that turns them into Ansible's exit.

ProvisionError     something the operator can fix; its text names the thing, its value and the next step
MissingLibrary     a Python library that this node's interpreter lacks
"""

from __future__ import annotations

import importlib
import traceback

from ansible.module_utils.basic import missing_required_lib


class ProvisionError(Exception):
    """A failure whose text is the whole message; `details` are further keys of the module's result."""

    def __init__(self, message, **details):
        super().__init__(message)
        self.details = details


class MissingLibrary(Exception):
    """A library that cannot be imported here; keeps the traceback of the attempt."""

    def __init__(self, library, reason):
        super().__init__(library)
        self.library = library
        self.reason = reason
        self.traceback = traceback.format_exc()


def require_library(name, reason):
    """Imports and returns the library `name`, which is needed `reason` ("to …"), or raises MissingLibrary."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingLibrary(name, reason) from None


def exit_with(module, call):
    """Ends an AnsibleModule: `call(module)` returns its result, or raises one of the failures above."""
    try:
        result = call(module)
    except ProvisionError as error:
        for warning in error.details.pop("warnings", []):
            module.warn(warning)
        module.fail_json(msg=str(error), **error.details)
    except OSError as error:
        module.fail_json(msg=f"{error.filename or 'system'}: {error.strerror or error}")
    except MissingLibrary as error:
        module.fail_json(msg=missing_required_lib(error.library, reason=error.reason), exception=error.traceback)
    for warning in result.pop("warnings", []):
        module.warn(warning)
    module.exit_json(**result)
