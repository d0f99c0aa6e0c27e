"""How long to wait before a hub is asked again: what its headers say, else a doubling pause."""

from __future__ import annotations

import email.utils
import re
import time

# `RateLimit: "resolvers";r=0;t=55` (IETF draft-ietf-httpapi-ratelimit-headers): a new window opens in t seconds.
RATE_LIMIT = re.compile(r";\s*t\s*=\s*(\d+)")
RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0


def wait_s(headers, attempt):
    """Seconds to wait after a refusal. `headers` is a case-insensitive mapping; `attempt` counts from 0."""
    pause_s = min(FIRST_PAUSE_S * 2**attempt, LONGEST_PAUSE_S)
    if match := RATE_LIMIT.search(headers.get("ratelimit", "")):
        # At least a short pause: a window that opens "in 0 seconds" is not open yet.
        return max(float(match.group(1)), FIRST_PAUSE_S)
    retry_after = headers.get("retry-after", "").strip()
    if retry_after.isdigit():
        return max(float(retry_after), FIRST_PAUSE_S)
    if retry_after:
        try:
            moment = email.utils.parsedate_to_datetime(retry_after).timestamp()
        except ValueError:
            return pause_s
        return max(moment - time.time(), FIRST_PAUSE_S)
    return pause_s


class WaitBudget:
    """Bounds what one file, or one question to the hub, may wait in all without getting any further."""

    def __init__(self, limit_s, tries):
        self.limit_s = limit_s
        self.tries = tries
        self.reset()

    def reset(self):
        """Something moved: count from zero again."""
        self.waited_s = 0.0
        self.attempt = 0

    def next_wait_s(self, headers=None):
        """Seconds to wait before the next attempt, or None when the tries or the time are spent."""
        pause_s = wait_s(headers or {}, self.attempt)
        if self.attempt + 1 >= self.tries or self.waited_s + pause_s > self.limit_s:
            return None
        self.attempt += 1
        self.waited_s += pause_s
        return pause_s
