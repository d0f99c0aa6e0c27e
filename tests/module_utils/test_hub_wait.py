"""How long to wait: by the hub's headers where they say it, bounded in every case."""

import email.utils
import time

import pytest
from ansible.module_utils.hub_wait import FIRST_PAUSE_S, LONGEST_PAUSE_S, WaitBudget, wait_s


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"ratelimit": '"resolvers";r=0;t=55'}, 55),
        ({"ratelimit": '"api"; r=0; t = 7', "retry-after": "99"}, 7),
        ({"ratelimit": '"api";r=0;t=0'}, FIRST_PAUSE_S),
        ({"retry-after": "12"}, 12),
        ({"retry-after": "0"}, FIRST_PAUSE_S),
        ({"retry-after": "soon"}, FIRST_PAUSE_S),
        ({"ratelimit": "nonsense"}, FIRST_PAUSE_S),
        ({}, FIRST_PAUSE_S),
    ],
)
def test_the_headers_decide(headers, expected):
    assert wait_s(headers, 0) == expected


def test_a_date():
    moment = email.utils.formatdate(time.time() + 100, usegmt=True)
    assert 90 < wait_s({"retry-after": moment}, 0) <= 100


def test_without_headers_the_pause_doubles_up_to_a_limit():
    pauses = [wait_s({}, attempt) for attempt in range(12)]
    assert pauses[:4] == [FIRST_PAUSE_S * 2**n for n in range(4)]
    assert pauses[-1] == LONGEST_PAUSE_S


def test_the_number_of_tries_is_bounded():
    budget = WaitBudget(limit_s=1000, tries=3)
    assert [budget.next_wait_s() is None for _ in range(3)] == [False, False, True]
    budget.reset()
    assert budget.next_wait_s() == FIRST_PAUSE_S


def test_the_time_is_bounded():
    budget = WaitBudget(limit_s=100, tries=50)
    assert budget.next_wait_s({"retry-after": "60"}) == 60
    assert budget.next_wait_s({"retry-after": "60"}) is None
    assert budget.next_wait_s({"retry-after": "40"}) == 40
