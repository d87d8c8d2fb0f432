"""Tags that are set and removed by several people while lines leave and come back and keys guard them: what is shown is what must be."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from registry.caller import Restrictions, Role, Tier
from simulators.network.entities import Line
from storage.api_keys import revoke_key
from tests.fleet.stage import ReadModelStage, open_read_model_stage
from tests.harness.machine_runner import ServiceMachine
from tests.length import examples
from tests.network_facts import ACCOUNT, SIBLING
from tests.tags.tagging import counts, list_again, move_line, tag, tags_shown, untag

pytestmark = pytest.mark.long

TAGS = st.sampled_from("xyz")
PLACES = st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True)


class TagMachine(ServiceMachine):
    """Four lines, three tags, an admin, a member, and a key that is restricted to a tag."""

    stage: ReadModelStage
    member: httpx.AsyncClient

    async def open(self, folder: Path, url: str | None) -> None:
        self.stage = await self.stack.enter_async_context(open_read_model_stage(folder, url=url))
        who = await self.stage.world.caller(Tier.ENTERPRISE, Role.MEMBER, organisation=self.stage.who.organisation)
        self.member = await self.stage.clients.enter_async_context(self.stage.world.client(who.secret))
        self.lines = [self.stage.line(number) for number in range(4)]
        self.listed = {line.iccid for line in self.lines}
        self.tags = defaultdict[str, set[str]](set)
        self.guards = dict[str, str]()
        await self.stage.count()

    def chosen(self, places: Sequence[int]) -> list[Line]:
        return [self.lines[place] for place in places]

    def known(self, lines: Sequence[Line]) -> set[str]:
        """Those that are believed to be the organisation's: listed, or asked for and found."""
        return {line.iccid for line in lines if line.iccid in self.listed or line.account_id == ACCOUNT}

    @rule(name=TAGS, places=PLACES, admin=st.booleans())
    def set_tag(self, name: str, places: Sequence[int], admin: bool) -> None:
        refused = not admin and name in self.guards
        http, lines = None if admin else self.member, self.chosen(places)
        said = self.run(tag(self.stage, name, lines, http=http, answers=403 if refused else 200))
        if not refused:
            assert said["tagged"] == len(self.known(lines) - self.tags[name])
            self.tags[name] |= self.known(lines)

    @rule(name=TAGS, places=PLACES, admin=st.booleans())
    def remove_tag(self, name: str, places: Sequence[int], admin: bool) -> None:
        refused = not admin and name in self.guards
        http, lines = None if admin else self.member, self.chosen(places)
        said = self.run(untag(self.stage, name, lines, http=http, answers=403 if refused else 200))
        if not refused:
            assert said["untagged"] == len(self.known(lines) & self.tags[name])
            self.tags[name] -= self.known(lines)

    @precondition(lambda self: self.guards)
    @rule(name=TAGS, places=PLACES, data=st.data())
    def set_by_restricted_key(self, name: str, places: Sequence[int], data: st.DataObject) -> None:
        held = data.draw(st.sampled_from(sorted(self.guards)))
        http = self.run(self.stage.restricted(tags=(held,)))
        self.guards[held] += " more"  # it guards, too, and nobody revokes it
        refused = name in self.guards
        lines = self.chosen(places)
        self.run(tag(self.stage, name, lines, http=http, answers=403 if refused else 200))
        if not refused:
            self.tags[name] |= self.known(lines) & self.tags[held]

    @rule(name=TAGS)
    def guard(self, name: str) -> None:
        if name not in self.guards:
            who, world = self.stage.who, self.stage.world
            self.guards[name], _ = self.run(world.key(who.person, who.organisation, restrictions=Restrictions(tags=(name,))))

    @rule(name=TAGS)
    def revoke_guard(self, name: str) -> None:
        if name in self.guards and " " not in self.guards[name]:
            world, organisation = self.stage.world, self.stage.who.organisation
            key = self.guards.pop(name)
            assert self.run(world.store.write(revoke_key, key=key, organisation=organisation, now=world.clock.now()))

    @rule(place=st.integers(0, 3))
    def leave(self, place: int) -> None:
        move_line(self.stage, self.lines[place], SIBLING)

    @rule(place=st.integers(0, 3))
    def come_back(self, place: int) -> None:
        move_line(self.stage, self.lines[place], ACCOUNT)

    @rule()
    def list_all(self) -> None:
        self.run(list_again(self.stage))
        self.listed = {line.iccid for line in self.lines if line.account_id == ACCOUNT}
        for name in self.tags:
            self.tags[name] &= self.listed

    @invariant()
    def what_is_shown_is_what_was_set(self) -> None:
        assert self.run(counts(self.stage)) == {name: len(iccids) for name, iccids in self.tags.items() if iccids}
        shown = self.run(tags_shown(self.stage))
        for line in self.lines:
            expected = sorted(name for name, iccids in self.tags.items() if line.iccid in iccids)
            assert shown.get(line.iccid) == (expected if line.iccid in self.listed else None)


class PostgresTagMachine(TagMachine):
    """The same on PostgreSQL."""

    engine = "postgresql"


TestTags = TagMachine.TestCase
TestTags.settings = settings(max_examples=examples(3), stateful_step_count=14, deadline=None)
TestTagsOnPostgres = pytest.mark.postgres(PostgresTagMachine.TestCase)
TestTagsOnPostgres.settings = settings(max_examples=examples(1), stateful_step_count=12, deadline=None)
