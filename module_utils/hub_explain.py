"""Says in words why a hub refused, and what to do about it."""

from __future__ import annotations


def explain_refusal(subject, endpoint, status, headers, token_given):
    """One sentence for an HTTP refusal that a retry does not heal.

    `subject` names what was asked for ("repository org/name at revision main"); `headers` is a case-insensitive
    mapping.
    """
    code = headers.get("x-error-code", "")
    reason = headers.get("x-error-message", "")
    said = f"HTTP {status}" + (f" {code}" if code else "") + (f": {reason}" if reason else "")
    return f"{subject}: {endpoint} answered {said}; {_next_step(status, code, token_given)}"


def _next_step(status, code, token_given):
    if code == "RevisionNotFound":
        return "check the revision (a branch, a tag, or a full 40-digit commit)"
    if code == "EntryNotFound":
        return "the commit has no such file: rerun hub_manifest with refresh=true"
    if status == 401 and not token_given:
        return "the name may be wrong, or the repository is private or gated: check repo_id, or set token"
    if status in (401, 403) and code == "GatedRepo":
        return "the model is gated: accept its terms on its page with the account that the token belongs to"
    if status == 401:
        return "the token is not valid there, or the name is wrong: check token and repo_id"
    if status == 403:
        return "access is refused: " + (
            "the token's account lacks the right to read it (a gated model's terms may have to be accepted on its page)"
            if token_given
            else "set token, or accept the model's terms on its page"
        )
    if status in (404, 410):
        return "check repo_id and revision, and whether this hub has the repository"
    if status == 451:
        return "it is not available from this place for legal reasons"
    if status == 429:
        return "the rate limit did not lift within the allowed wait: rerun later, set token, or raise rate_limit_wait_s"
    if status >= 500:
        return "the hub has a fault: rerun later, or name a mirror as endpoint"
    return "check the endpoint: this is not how a hub answers"
