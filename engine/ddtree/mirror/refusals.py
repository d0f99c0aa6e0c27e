"""What the mirror answers instead of a file, each with the hub's own error code where it has one."""

import concurrent.futures


class Refusal(Exception):
    """An answer other than the thing asked for; the text goes to the client."""

    status = 500
    error_code = ""


class RepoNotFound(Refusal):
    status = 404
    error_code = "RepoNotFound"


class RevisionNotFound(Refusal):
    status = 404
    error_code = "RevisionNotFound"


class EntryNotFound(Refusal):
    status = 404
    error_code = "EntryNotFound"


class RepoIncomplete(Refusal):
    """A file of the repository is missing, cut short or changed: nothing of it is served until that is mended."""

    status = 503
    error_code = "RepoIncomplete"


class RepoBusy(Refusal):
    """The repository's files are being hashed; `done` is set when that has ended."""

    status = 503
    error_code = "RepoBusy"

    def __init__(self, message: str, done: "concurrent.futures.Future[None]") -> None:
        super().__init__(message)
        self.done = done
