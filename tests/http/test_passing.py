"""How many long answers may be under way."""

from contextlib import ExitStack

from transports.http.concurrency import EVENT_STREAMS_OF_ALL, EVENT_STREAMS_OF_ONE, StreamSlots


def test_one_organisation_has_so_many_at_once_and_all_together_so_many() -> None:
    lane = StreamSlots(2, 3)
    with ExitStack() as held:
        held.enter_context(lane.one_more("one"))
        assert lane.has_room("one")
        held.enter_context(lane.one_more("one"))
        assert (lane.has_room("one"), lane.has_room("other")) == (False, True)
        held.enter_context(lane.one_more("other"))
        assert not lane.has_room("other")
    assert lane.has_room("one") and lane.has_room("other")


def test_chats_leave_connections_for_everybody_else() -> None:
    assert EVENT_STREAMS_OF_ONE < EVENT_STREAMS_OF_ALL <= 512 // 2
