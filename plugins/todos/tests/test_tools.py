"""The tools by themselves: what they accept, what they say, and that no text breaks them."""

from __future__ import annotations

import inspect
import json
import sys
import threading
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from locus_plugin_todos import Todo, TodoState, make_todo_tools
from locus_plugin_todos.events import TodoChange, TodoChangedEvent, find_changes
from locus_plugin_todos.todo import to_json


@pytest.fixture
def state() -> TodoState:
    return TodoState()


def tools_of(state: TodoState | None) -> tuple[Any, Any]:
    write, read = make_todo_tools(state)
    return write, read


def test_the_tools_take_and_give_text(state: TodoState) -> None:
    write, read = tools_of(state)
    assert (write.name, read.name) == ("write_todos", "read_todos")
    assert str(inspect.signature(write.fn)) == "(todos_json: 'str') -> 'str'"
    assert str(inspect.signature(read.fn)) == "() -> 'str'"
    assert write.spec.parameters["required"] == ("todos_json",)
    # A tool that could run children would take a part of what the subagents of its turn may spend.
    assert write.context_parameter is read.context_parameter is None
    assert write.effect == read.effect == "pure"  # what they do is in the run alone: a crash may repeat it


def test_a_list_replaces_the_one_that_was_there_and_comes_back_in_full(state: TodoState) -> None:
    write, read = tools_of(state)
    assert read() == "[]"
    assert write('[{"content": "a"}, {"status":"in_progress", "content":"b", "note": 1}]') == (
        '[{"content": "a", "status": "pending"}, {"content": "b", "status": "in_progress"}]'
    )
    assert write('[{"content": "ü", "status": "completed"}]') == '[{"content": "ü", "status": "completed"}]'
    assert read() == '[{"content": "ü", "status": "completed"}]'
    assert state.snapshot() == [Todo("ü", "completed")]
    assert write("[]") == "[]"


def test_without_a_state_the_tools_share_one_of_their_own() -> None:
    write, read = tools_of(None)
    _, other = tools_of(None)
    write('[{"content": "a"}]')
    assert read() == '[{"content": "a", "status": "pending"}]'
    assert other() == "[]"


def test_a_status_is_any_text() -> None:
    write, _ = tools_of(None)
    assert write('[{"content": "a", "status": "blocked"}]') == '[{"content": "a", "status": "blocked"}]'


LONG = "x" * 501
#: What a model writes -> how the answer begins.
WRONG: dict[str, str] = {
    "": "invalid JSON: Expecting value: line 1 column 1 (char 0)",
    "nonsense": "invalid JSON: Expecting value: line 1 column 1 (char 0)",
    "[{]": "invalid JSON: Expecting property name enclosed in double quotes: line 1 column 3 (char 2)",
    "[" * 100_000: "invalid JSON: it is nested too deeply",
    '[{"content": ' + "9" * 10_000 + "}]": "invalid JSON: Exceeds the limit",
    " " * 2_000_000: "invalid JSON: got 2,000,000 characters, which is more than 100 todos of 500 characters take",
    '{"content": "a"}': "todos_json must be a JSON array of {content, status} objects",
    "null": "todos_json must be a JSON array of {content, status} objects",
    '"a"': "todos_json must be a JSON array of {content, status} objects",
    "3": "todos_json must be a JSON array of {content, status} objects",
    '["a"]': "each todo must be an object with `content` and optional `status`",
    '[{"content": "a"}, null]': "each todo must be an object with `content` and optional `status`",
    "[[]]": "each todo must be an object with `content` and optional `status`",
    "[{}]": "invalid todo entry {}: content is missing",
    '[{"status": "pending"}]': "invalid todo entry {'status': 'pending'}: content is missing",
    '[{"content": 3}]': "invalid todo entry {'content': 3}: content must be a str, got 3",
    '[{"content": "a", "status": null}]': (
        "invalid todo entry {'content': 'a', 'status': None}: status must be a str, got None"
    ),
    '[{"content": {"content": "a"}}]': "invalid todo entry {'content': {'content': 'a'}}: content must be a str, got {",
    f'[{{"content": "{LONG}"}}]': "invalid todo entry {'content': 'xxx",
    '[{"content": "\\ud800"}]': "invalid todo entry {'content': '\\ud800'}: content must be text, got half of a",
    json.dumps([{"content": "a"}] * 101): "todos_json must have at most 100 todos, got 101",
    json.dumps([{"content": "a"}] * 10_000): "todos_json must have at most 100 todos, got 10,000",
}


@pytest.mark.parametrize(("text", "said"), WRONG.items(), ids=map(str, range(len(WRONG))))
def test_what_cannot_be_used_is_said_and_the_list_stays(state: TodoState, text: str, said: str) -> None:
    write, read = tools_of(state)
    write('[{"content": "kept"}]')
    answer = write(text)
    assert answer.startswith(said)
    assert len(answer) < 500
    assert read() == '[{"content": "kept", "status": "pending"}]'


def test_an_error_says_how_long_a_text_is_and_may_be(state: TodoState) -> None:
    write, _ = tools_of(state)
    assert write(f'[{{"content": "{LONG}"}}]').endswith(": content must have at most 500 characters, got 501")


def test_the_longest_list_is_accepted_in_its_longest_form(state: TodoState) -> None:
    write, read = tools_of(state)
    longest = [
        {"content": "\N{EARTH GLOBE EUROPE-AFRICA}" * 500, "status": "\N{EARTH GLOBE EUROPE-AFRICA}" * 500}
    ] * 100
    assert json.loads(write(json.dumps(longest, indent=8))) == longest
    assert json.loads(read()) == longest


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["content", "status", "x"]) | st.text(), inner),
    max_leaves=8,
)


@given(st.text() | st.lists(json_values).map(json.dumps) | json_values.map(json.dumps))
@example("[" * sys.getrecursionlimit() * 5)
def test_any_text_gives_the_list_or_says_what_is_wrong(text: str) -> None:
    state = TodoState()
    write, read = tools_of(state)
    answer = write(text)
    assert answer.startswith(("invalid JSON: ", "todos_json must ", "each todo must ", "invalid todo entry ", "["))
    if answer.startswith("["):
        assert answer == read() == to_json(state.snapshot())
        assert write(answer) == answer  # canonical
        given = json.loads(text)
        assert [todo.content for todo in state.snapshot()] == [entry["content"] for entry in given]
    else:
        assert read() == "[]"


# -- the list ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [3, None, "x" * 501, "\udfff"])
def test_a_todo_checks_its_texts(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"^content must"):
        Todo(wrong)
    with pytest.raises(ValueError, match=r"^status must"):
        Todo("a", wrong)


def test_a_list_refuses_what_it_cannot_hold_and_stays(state: TodoState) -> None:
    kept = state.replace([Todo("kept")])
    with pytest.raises(ValueError, match="at most 100 todos, got 101"):
        state.replace([Todo("a")] * 101)
    with pytest.raises(ValueError, match=r"expected a Todo, got \{'content': 'a'\}"):
        state.replace([{"content": "a"}])  # type: ignore[list-item]
    assert state.snapshot() == kept == [Todo("kept")]


def test_a_snapshot_is_a_copy(state: TodoState) -> None:
    state.replace([Todo("a")]).append(Todo("b"))
    state.snapshot().append(Todo("c"))
    assert state.snapshot() == [Todo("a")]


def test_eight_threads_never_see_a_part_of_a_list() -> None:
    state, wrong, go = TodoState(), list[str](), threading.Barrier(8)
    write, read = tools_of(state)

    def work(number: int) -> None:
        mine = json.dumps([{"content": f"{number}"}] * (number + 1))
        go.wait()
        for _ in range(200):
            write(mine)
            seen = {entry["content"] for entry in json.loads(read())}
            count = len(state.snapshot())
            if len(seen) != 1 or count not in range(1, 9):
                wrong.append(f"{seen} {count}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_each_swap_gives_what_it_replaced() -> None:
    state, go, seen = TodoState(), threading.Barrier(8), list[Any]()

    def work(number: int) -> None:
        go.wait()
        for turn in range(100):
            before, after = state.swap([Todo(f"{number}.{turn}")])
            seen.append((before, after))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Each list was replaced once, but for the last one: no swap got lost.
    replaced = [before for before, _ in seen]
    assert sorted(map(repr, replaced)) == sorted(map(repr, [(), *(a for _, a in seen if a != tuple(state.snapshot()))]))


# -- what changed ------------------------------------------------------------------------------------


def test_a_change_says_what_was_and_what_is() -> None:
    before = [Todo("a"), Todo("b", "in_progress"), Todo("gone"), Todo("same")]
    after = [Todo("same"), Todo("b", "completed"), Todo("new"), Todo("a", "in_progress")]
    assert find_changes(before, after) == (
        TodoChange("b", "in_progress", "completed"),
        TodoChange("new", None, "pending"),
        TodoChange("a", "pending", "in_progress"),
        TodoChange("gone", "pending", None),
    )
    assert [change.is_completed for change in find_changes(before, after)] == [True, False, False, False]


lists = st.lists(st.builds(Todo, st.sampled_from("abc"), st.sampled_from(["pending", "completed"])), max_size=6)


@given(lists, lists)
def test_changes_lead_from_one_list_to_the_other(before: list[Todo], after: list[Todo]) -> None:
    counted: dict[tuple[str, str], int] = {}
    for todo in before:
        counted[todo.content, todo.status] = counted.get((todo.content, todo.status), 0) + 1
    for change in find_changes(before, after):
        assert change.before != change.after
        for status, step in ((change.before, -1), (change.after, 1)):
            if status is not None:
                counted[change.content, status] = counted.get((change.content, status), 0) + step
    wanted: dict[tuple[str, str], int] = {}
    for todo in after:
        wanted[todo.content, todo.status] = wanted.get((todo.content, todo.status), 0) + 1
    assert {key: count for key, count in counted.items() if count} == wanted


@given(lists)
def test_the_same_list_in_another_order_is_not_a_change(todos: list[Todo]) -> None:
    assert find_changes(todos, list(todos)) == ()
    if len({todo.content for todo in todos}) == len(todos):
        assert find_changes(todos, todos[::-1]) == ()


def test_a_changed_list_is_shown_as_a_list() -> None:
    changes = [
        TodoChange("look", "in_progress", "completed"),
        TodoChange("write\nit", "pending", "in_progress"),
        TodoChange("check", None, "pending"),
        TodoChange("ask", "pending", None),
    ]
    event = TodoChangedEvent(run_id="r", seq=1, iteration=1, changes=changes, completed=1, total=3)
    assert event.shown.splitlines() == [
        "todos: 1 of 3 completed",
        "  [x] look",
        "  [>] write it",
        "  [ ] check",
        "  [-] ask",
    ]
