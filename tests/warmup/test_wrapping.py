"""Functions are wrapped for a while, and whoever else wraps them meanwhile is not in the way."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tooling.warmup.wrapping import wrapped

Call = Callable[..., Any]


class Base:
    """Has a method, for a class, for one that inherits it, and for an instance."""

    def work(self, number: int) -> int:
        if number < 0:
            raise ValueError("negative")
        return number


class Derived(Base):
    """Inherits the method."""


def make_module() -> ModuleType:
    module = ModuleType("somebody")
    module.work = lambda number: Base().work(number)  # type: ignore[attr-defined]
    return module


def through(owner: Any) -> tuple[Any, Call]:
    """The owner, and a call that looks the name up anew each time."""

    def call(number: int) -> Any:
        return owner.work(number)

    return owner, call


OWNERS: dict[str, Callable[[], tuple[Any, Call]]] = {
    "a module": lambda: through(make_module()),
    "a class": lambda: (Base, lambda number: Base().work(number)),
    "a class that inherits it": lambda: (Derived, lambda number: Derived().work(number)),
    "an instance": lambda: through(Base()),
}


@pytest.fixture(params=OWNERS)
def owner(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Call]]:
    """An owner of `work`, and how it is called; afterwards the owner must be as before."""
    found, call = OWNERS[request.param]()
    before = dict(vars(found))
    yield found, call
    assert dict(vars(found)) == before
    assert call(7) == 7


def noting(seen: list[str], name: str) -> Callable[[Call], Call]:
    """A wrapper that notes its name, and passes the call on."""

    def around(original: Call) -> Call:
        def noted(*args: Any, **kwargs: Any) -> Any:
            seen.append(name)
            return original(*args, **kwargs)

        return noted

    return around


def test_a_wrapper_sees_every_call_while_it_lasts_and_no_later_one(owner: tuple[Any, Call]) -> None:
    where, call = owner
    seen: list[str] = []
    with wrapped(where, "work", noting(seen, "a")):
        assert (call(1), call(number=2)) == (1, 2)
    call(3)
    assert seen == ["a", "a"]


def test_a_wrapper_is_taken_off_after_an_error_inside_and_around(owner: tuple[Any, Call]) -> None:
    where, call = owner
    with pytest.raises(ValueError, match="negative"), wrapped(where, "work", noting([], "a")):
        call(-1)


def test_a_name_that_is_not_there_is_no_trouble() -> None:
    module = ModuleType("somebody")
    with wrapped(module, "work", noting([], "a")), wrapped(None, "work", noting([], "a")):
        assert not hasattr(module, "work")


def test_wrappers_that_end_in_another_order_leave_nothing(owner: tuple[Any, Call]) -> None:
    where, call = owner
    seen: list[str] = []
    first, second = ExitStack(), ExitStack()
    first.enter_context(wrapped(where, "work", noting(seen, "first")))
    second.enter_context(wrapped(where, "work", noting(seen, "second")))
    call(1)
    first.close()
    call(2)
    second.close()
    call(3)
    assert seen == ["second", "first", "second"]


@contextmanager
def somebody_elses(where: Any, *, copies: bool) -> Iterator[list[str]]:
    """A wrapper that is none of ours, as a profiler puts on top; `functools.wraps` copies attributes too."""
    there = where.__dict__.get("work")
    original, seen = where.work, []

    def theirs(*args: Any, **kwargs: Any) -> Any:
        seen.append("theirs")
        return original(*args, **kwargs)

    where.work = functools.wraps(original)(theirs) if copies else theirs
    yield seen
    where.work = there


@pytest.mark.parametrize("copies", [False, True])
def test_somebody_elses_wrapper_on_top_stays_and_ours_is_silent(owner: tuple[Any, Call], copies: bool) -> None:
    where, call = owner
    seen: list[str] = []
    with ExitStack() as ours, ExitStack() as theirs:
        ours.enter_context(wrapped(where, "work", noting(seen, "ours")))
        also = theirs.enter_context(somebody_elses(where, copies=copies))
        call(1)
        ours.close()
        assert call(2) == 2
        assert (seen, also) == (["ours"], ["theirs", "theirs"])
        theirs.close()  # puts back what it found: ours
        assert call(3) == 3
        assert seen == ["ours"]
        with wrapped(where, "work", noting(seen, "next")):
            call(4)
    assert seen == ["ours", "next"]


def test_a_call_under_way_in_another_thread_ends_as_it_began() -> None:
    module = make_module()
    entered, go_on = threading.Event(), threading.Event()

    def around(original: Call) -> Call:
        def slow(number: int) -> Any:
            entered.set()
            go_on.wait(30)
            return original(number)

        return slow

    found: list[int] = []
    with wrapped(module, "work", around):
        thread = threading.Thread(target=lambda: found.append(module.work(5)))
        thread.start()
        entered.wait(30)
    go_on.set()
    thread.join()
    assert found == [5]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=12))
def test_whatever_comes_and_goes_only_what_lasts_is_called(steps: list[tuple[bool, int]]) -> None:
    """Each step begins a wrapper, or ends one of those that last."""
    one = Base()
    lasting: dict[str, ExitStack] = {}
    seen: list[str] = []
    for number, (begins, which) in enumerate(steps):
        if begins or not lasting:
            lasting[str(number)] = ExitStack()
            lasting[str(number)].enter_context(wrapped(one, "work", noting(seen, str(number))))
        else:
            lasting.pop(list(lasting)[which % len(lasting)]).close()
        seen.clear()
        assert one.work(number) == number
        assert seen == list(reversed(lasting))
    for stack in lasting.values():
        stack.close()
    assert vars(one) == {}
