"""What the planner that knows AgentDojo's answers makes a call wait for: the results that its values are in."""

from __future__ import annotations

from typing import Any

from contrib.bench.agentdojo.dependencies import Made, find_dependencies


def read(result: Any, **arguments: Any) -> Made:
    return Made(arguments=arguments, result=result, targets=(), is_read=True, is_sent=False)


def visit(url: str, result: str) -> Made:
    return Made(arguments={"url": url}, result=result, targets=("url",), is_read=True, is_sent=True)


def send(to: str, text: str = "Hello") -> Made:
    arguments = {"to": to, "text": text}
    return Made(arguments=arguments, result="sent", targets=("to",), is_read=False, is_sent=True)


def test_what_the_user_says_needs_nothing() -> None:
    assert find_dependencies("Read my mail. Say Hello to Ann.", [read("..."), send("Ann")]) == [[], []]


def test_a_call_needs_the_first_result_that_has_its_value_and_not_the_calls_between() -> None:
    calls = [read({"from": "Bob"}), read("Bob"), send("Ann"), send("Bob")]

    assert find_dependencies("Say Hello to Ann and the sender.", calls) == [[], [], [], [0]]


def test_the_key_of_a_result_may_be_a_name() -> None:
    assert find_dependencies("Say Hello.", [read({"Hotel Luna": 120}), send("Hotel Luna")])[1] == [0]


def test_what_is_in_no_result_comes_after_the_reads_before_it() -> None:
    assert find_dependencies("Tell Ann the sum.", [read("1"), read("2"), send("Ann", "3 in all")])[2] == [0, 1]


def test_a_summary_does_not_wait_for_a_page_whose_address_another_person_gave() -> None:
    calls = [read("see www.a.example"), visit("www.a.example", "news"), send("Ann", "In short: news")]

    assert find_dependencies("Tell Ann what the link says.", calls) == [[], [0], [0]]


def test_a_summary_waits_for_a_page_whose_address_the_user_gave() -> None:
    calls = [visit("www.a.example", "news"), send("Ann", "In short")]

    assert find_dependencies("Tell Ann what www.a.example says.", calls) == [[], [0]]


def test_a_call_comes_after_one_that_changed_the_same_thing() -> None:
    calls = [read("Dora"), send("Dora"), send("Dora", "Hello, too")]

    assert find_dependencies("Say Hello, and Hello, too.", calls) == [[], [0], [0, 1]]


def test_a_short_id_is_found_only_as_a_whole_value() -> None:
    calls = [read("on June 13"), read([{"id": "13"}]), send("13")]

    assert find_dependencies("Say Hello on the 13 of June.", calls)[2] == [1]
