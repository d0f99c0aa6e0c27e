"""Addresses of a hub."""

import pytest
from ansible.module_utils.hub_endpoint import checked_endpoint, file_url, origin
from ansible.module_utils.provision_error import ProvisionError


def test_a_trailing_slash_goes():
    assert checked_endpoint("https://hub.example/mirror/") == "https://hub.example/mirror"


@pytest.mark.parametrize(
    "endpoint", ["", "hub.example", "ftp://hub", "file:///x", "https://", "https://h?x=1", "https://h#f"]
)
def test_what_is_no_hub_is_refused(endpoint):
    with pytest.raises(ProvisionError, match="not a hub's address"):
        checked_endpoint(endpoint)


def test_a_password_in_the_address_is_refused_and_not_repeated():
    with pytest.raises(ProvisionError) as caught:
        checked_endpoint("https://user:geheim@hub.example")
    assert "geheim" not in str(caught.value)
    assert "option token" in str(caught.value)


def test_origins():
    assert origin("https://Hub.example/a") == origin("https://hub.example:443/b?c")
    assert origin("http://hub.example") != origin("https://hub.example")
    assert origin("http://hub.example:81") != origin("http://hub.example")
    assert origin("https://hub.example.evil") != origin("https://hub.example")


def test_names_are_quoted():
    url = file_url("http://h", "org/name", "c" * 40, "a b/ü?#%.bin")
    assert url == f"http://h/org/name/resolve/{'c' * 40}/a%20b/%C3%BC%3F%23%25.bin"
