"""HTTP requests of our own to hubs: a token for one origin only, no netrc, no redirect followed unseen."""

from __future__ import annotations

import threading

from ansible.module_utils.hub_endpoint import origin
from ansible.module_utils.provision_error import require_library

USER_AGENT = "ddtree-infra"


class HubSession:
    """Sends the token to the origin of `token_endpoint` and nowhere else. One HTTP session a thread."""

    def __init__(self, token, token_endpoint, timeout_s):
        self._requests = require_library("requests", "to resolve the addresses of files")
        self._token = token
        self._token_origin = origin(token_endpoint)
        self._timeout_s = timeout_s
        self._local = threading.local()
        self.failures = (self._requests.RequestException,)

    def has_token_for(self, url):
        return bool(self._token) and origin(url) == self._token_origin

    def request(self, method, url, with_token=True, stream=False, headers=None):
        """One request; the answer may be a redirect. `identity`: a compressed answer would have another length."""
        headers = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **(headers or {})}
        token = self._token if with_token and self.has_token_for(url) else None

        def authorize(request):
            # Always given, so that requests never looks into a netrc file.
            if token:
                request.headers["Authorization"] = f"Bearer {token}"
            return request

        if not hasattr(self._local, "session"):
            self._local.session = self._requests.Session()
        return self._local.session.request(
            method, url, headers=headers, auth=authorize, allow_redirects=False, stream=stream, timeout=self._timeout_s
        )
