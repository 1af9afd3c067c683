"""Freeze, proposals and the way back: what holds, what expires and why; written before it counts."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.control.consent import Consent
from leeward.control.limits import over_limits
from leeward.core.errors import PlanError, ProtocolError
from leeward.core.journal import Journal
from leeward.core.outcome import DONE, aborted
from leeward.core.plan import Estimate, Plan, Slot, deployment
from leeward.core.settings import Settings
from leeward.core.standing import Proposal, Standing
from leeward.core.table import even_table
from leeward.sim.memory import ListSink, MemoryControlStore, World
from tests.helpers.control_views import node, view


class Office:
    """A consent in a world, and the next leader's in the same one."""

    def __init__(self, **settings):
        self.world, self.sink, self.settings = World(), ListSink(), Settings(**settings)
        self.consent = self.next_leader()

    def next_leader(self):
        store = MemoryControlStore(self.world)
        store.claim()
        consent = Consent(topology="app", store=store, settings=self.settings, emit=self.sink.emit)
        consent.load()
        return consent

    @property
    def expired(self):
        return [fields["why"] for fields in self.sink.of("proposal_expired")]


def plan(before, work, **estimate):
    tables = {**before.tables, "work": even_table(work)}
    return Plan(tables=tables, placement=before.assignment, reason="load", estimate=Estimate(**estimate))


def test_a_freeze_holds_for_the_next_leader_until_it_is_undone():
    office = Office()
    assert office.consent.objection() == ""
    told = office.consent.freeze(True, "release on Friday", 5.0)
    assert told == "frozen: nothing is carried out but recovery from losses"
    heir = office.next_leader()
    assert heir.objection() == "the topology is frozen: release on Friday (leeward freeze app --undo)"
    assert heir.freeze(True, "release on Friday", 9.0) == "it is frozen already"
    assert heir.standing.since == 5.0
    assert heir.freeze(False, "", 10.0) == "plans are carried out again" and heir.objection() == ""
    assert heir.freeze(False, "", 11.0) == "it is not frozen"
    assert [name for name, _ in office.sink.events] == ["frozen", "frozen", "thawed"], "an heir tells it again"


@pytest.mark.parametrize("on", [False, True])
def test_decisions_that_cannot_be_read_hold_as_a_freeze_until_a_person_decides(on):
    office, old, new = Office(), view(work=(2,)), view(work=(3, 4), epoch=4)
    office.world.standing = unread = Standing.unread("standing field 'version' is 3, this program reads 2.")
    heir = office.next_leader()
    assert heir.objection() == f"the topology is frozen: {unread.why} (leeward freeze app --undo)"
    assert office.sink.events == [("frozen", {"why": unread.why})]
    heir.ended(journal(old, new))
    heir.unwanted()
    heir.look(new)
    assert office.world.standing is unread, "the release that wrote them finds them as they were"
    heir.freeze(on, "by hand", 9.0)
    before = deployment(old.tables, old.assignment)
    wanted = Standing(frozen=True, why="by hand", since=9.0, before=before) if on else Standing(before=before)
    assert office.world.standing == wanted
    assert heir.objection() == ("the topology is frozen: by hand (leeward freeze app --undo)" if on else "")


def test_a_proposal_is_approved_as_it_was_made():
    office, before = Office(), view(work=(2,))
    wanted = plan(before, (2, 3), objective=0.3, objective_now=0.5)
    office.consent.propose(wanted, before, 7.0)
    heir = office.next_leader()
    waiting = heir.standing.proposal
    assert (waiting.number, waiting.epoch, waiting.made_at, waiting.gain) == (1, 3, 7.0, pytest.approx(0.2))
    assert waiting.after["work"] == {"n1": 1, "n2": 1} and waiting.before["work"] == {"n1": 1}
    for number in (0, 1):
        approved = heir.approved(number, before)
        assert dict(approved.tables) == wanted.tables and dict(approved.placement) == wanted.placement
    assert "approved by hand" in approved.reason
    heir.taken()
    with pytest.raises(PlanError, match="no plan waits for approval"):
        office.next_leader().approved(1, before)
    assert office.expired == []


def test_the_same_wish_again_keeps_its_number_and_another_one_replaces_it():
    office, before = Office(), view(work=(2,))
    for work in ((2, 3), (2, 3), (2, 4), (2, 3)):
        office.consent.propose(plan(before, work), before, 0.0)
    assert office.consent.standing.proposal.number == 3
    assert office.expired == ["the policy proposes plan 2 by now", "the policy proposes plan 3 by now"]
    with pytest.raises(PlanError, match=r"plan 1 does not wait\. Plan 3 does"):
        office.consent.approved(1, before)
    office.consent.unwanted()
    office.consent.unwanted()
    assert office.expired[2:] == ["the policy wants no change by now"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda v: replace(v, epoch=4), "it was made in epoch 3, epoch 4 is in force"),
        (lambda v: replace(v, assignment={**v.assignment, 2: Slot("n2", 1)}), "the replicas are on other nodes by now"),
        (lambda v: replace(v, nodes=v.nodes[:2]), "plan puts task 4 on unknown node 'n3'"),
        (lambda v: replace(v, nodes=(node("n1"), node("n2", draining=True), v.nodes[2])), "'n2', which drains"),
        (lambda v: replace(v, apart=(("source", "work"),)), "'source' and 'work' on 'n1'"),
    ],
)
@pytest.mark.parametrize("approved", [True, False])
def test_a_proposal_expires_when_the_view_has_changed(change, why, approved):
    office, before = Office(), view(work=(2,))
    office.consent.propose(plan(before, (2, 3)), before, 0.0)
    after = change(before)
    if approved:
        with pytest.raises(PlanError, match="plan 1 has expired: "):
            office.consent.approved(1, after)
    else:
        office.consent.look(after)
    assert len(office.expired) == 1 and why in office.expired[0]
    assert office.next_leader().standing.proposal is None


def test_a_cost_cap_that_was_lowered_refuses_the_waiting_plan_by_the_cost_with_links():
    office, before = Office(cost_cap=8.0), view(work=(2,))
    wanted = plan(before, (2, 3), cost_per_h=7.0, cost_now_per_h=6.0)  # 4 $/h without links
    office.consent.propose(wanted, before, 0.0)
    office.settings = Settings(cost_cap=5.0)
    why = over_limits(wanted, before, office.settings)
    assert why == "the cost of 7 $/h is over cost_cap 5"
    with pytest.raises(PlanError, match=re.escape(f"plan 1 has expired: {why}. Wait for the next one.")):
        office.next_leader().approved(1, before)
    assert office.expired == [why] and office.world.standing.proposal is None


def test_a_plan_that_costs_less_by_its_links_stays_and_is_approved_over_the_cap():
    office, before = Office(cost_cap=2.5), view(work=(2,))
    wanted = plan(before, (3,), cost_per_h=7.0, cost_now_per_h=9.0)  # 3 $/h without links, as now
    assert over_limits(wanted, before, office.settings) == ""
    office.consent.propose(wanted, before, 0.0)
    heir = office.next_leader()
    heir.look(before)
    assert office.expired == []
    approved = heir.approved(1, before)
    assert (approved.estimate.cost_per_h, approved.estimate.cost_now_per_h) == (7.0, 9.0)


def test_a_proposal_that_still_holds_stays():
    office, before = Office(), view(work=(2,))
    office.consent.propose(plan(before, (2, 3)), before, 0.0)
    office.consent.look(replace(before, measured={}))
    assert office.expired == [] and office.consent.standing.proposal is not None


def test_a_gain_out_of_nothing_is_not_told_as_a_number():
    office, before = Office(), view(work=(2,))
    office.consent.propose(plan(before, (2, 3), objective=0.3, objective_now=float("inf")), before, 0.0)
    assert office.next_leader().standing.proposal.gain is None


def journal(old, new, *, kind="handover", result=DONE):
    return Journal(
        kind=kind, old_tables=old.tables, new_tables=new.tables, old_slots=old.assignment, new_slots=new.assignment,
        result=result,
    )  # fmt: skip


def test_the_way_back():
    office, old, new = Office(), view(work=(2,)), view(work=(3, 4), epoch=4)
    with pytest.raises(PlanError, match="no reconfiguration is known to go back behind"):
        office.consent.back(new)
    office.consent.ended(journal(old, new))
    heir = office.next_leader()
    assert deployment(heir.back(new).tables, heir.back(new).placement) == deployment(old.tables, old.assignment)
    gone = replace(new, nodes=new.nodes[1:])
    with pytest.raises(PlanError, match=r"replicas on \['n1'\], and no supervisor runs there"):
        heir.back(gone)
    draining = replace(new, nodes=(node("n1", draining=True), *new.nodes[1:]))
    with pytest.raises(PlanError, match="which drains"):
        heir.back(draining)


@pytest.mark.parametrize(
    "over",
    [
        journal(view(work=(2,)), view(work=(3,)), kind="reset"),
        journal(view(work=(2,)), view(work=(3,)), result=aborted("a deadline")),
        journal(view(work=(2,)), view(work=(2,))),
        Journal(),
    ],
)
def test_only_a_reconfiguration_that_was_carried_out_can_be_taken_back(over):
    office = Office()
    office.consent.ended(over)
    assert office.world.standing is None


names, numbers = st.text("ab", min_size=1, max_size=3), st.integers(0, 9)
placed = st.dictionaries(names, st.dictionaries(names, numbers, max_size=2), max_size=2)
proposals = st.builds(
    Proposal, number=numbers, epoch=numbers, made_at=st.floats(0, 1e9), reason=st.text(max_size=5), before=placed,
    after=placed, tables=st.dictionaries(names, st.lists(numbers, max_size=3).map(tuple), max_size=2),
    slots=st.dictionaries(numbers, st.builds(Slot, names, numbers), max_size=3), gain=st.none() | st.floats(-1, 1),
    cost_per_h=st.none() | st.floats(0, 9), cost_now_per_h=st.none() | st.floats(0, 9),
)  # fmt: skip


@given(
    st.builds(
        Standing,
        frozen=st.booleans(),
        why=st.text(max_size=5),
        since=st.floats(0, 1e9),
        proposals=numbers,
        proposal=st.none() | proposals,
        before=placed,
    )
)
def test_a_standing_is_read_as_it_was_written(standing):
    assert Standing.from_json(standing.to_json()) == standing


@pytest.mark.parametrize("cost", [None, 9.0])
def test_a_proposal_without_a_cost_of_now_is_written_and_read_without_it(cost):
    proposal = Proposal(
        number=1, epoch=3, made_at=0.0, reason="", before={}, after={}, tables={}, slots={}, cost_now_per_h=cost
    )
    text = Standing(proposal=proposal).to_json()
    assert ("cost_now_per_h" in json.loads(text)["proposal"]) == (cost is not None)
    assert Standing.from_json(text).proposal == proposal


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version":1,"proposal":null,"x":1}', '{"version":1,"proposal":{}}'])
def test_other_texts_are_refused(text):
    with pytest.raises(ProtocolError, match="not a standing"):
        Standing.from_json(text)
    with pytest.raises(ProtocolError, match="'version' is 99"):
        Standing.from_json('{"version":99}')
