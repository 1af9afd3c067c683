package leeward.plugin;

import static leeward.plugin.Scene.placement;
import static leeward.plugin.Scene.plan;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.ExecutorDetails;
import org.junit.jupiter.api.Test;

/** Whole passes of the plugin on Storm's own model objects. */
class PlanSchedulerTest {
    private final Map<String, Wish> wishes = new HashMap<>();
    private boolean read = true;
    private RuntimeException broken;
    private String snapshot;

    private final PlanScheduler scheduler = new PlanScheduler(new PlanScheduler.Link() {
        @Override
        public Optional<Map<String, Wish>> wishes() {
            if (broken != null) {
                throw broken;
            }
            return read ? Optional.of(wishes) : Optional.empty();
        }

        @Override
        public void publish(String json) {
            snapshot = json;
        }

        @Override
        public void close() {
            snapshot = null;
        }
    });

    private Scene.Watched pass(Scene scene) {
        Scene.Watched cluster = scene.cluster();
        scheduler.schedule(cluster.getTopologies(), cluster);
        return cluster;
    }

    private static Scene twoNodes() {
        return new Scene().supervisor("n1", 6701, 6702, 6703).supervisor("n2", 6701, 6702, 6703);
    }

    private static Set<Integer> tasks(Cluster cluster, String name) {
        Set<Integer> tasks = new HashSet<>();
        placement(cluster, name).values().forEach(tasks::addAll);
        return tasks;
    }

    @Test
    void aPlanThatFitsIsPlacedExactly() {
        wishes.put("q", plan("q", 7, "n1:6702 1 3", "n2:6701 2"));
        Cluster cluster = pass(twoNodes().topology("q", 1, 3));
        assertEquals(Map.of("n1:6702", Set.of(1, 3), "n2:6701", Set.of(2)), placement(cluster, "q"));
        assertEquals("leeward: epoch 7 placed", cluster.getStatus("q-1-0"));
    }

    @Test
    void onlySlotsThatDifferAreTouched() {
        wishes.put("q", plan("q", 8, "n1:6701 1 2", "n2:6702 3", "n2:6703 4"));
        Scene.Watched cluster = pass(twoNodes().topology("q", 3, 4)
            .runs("q", "n1", 6701, 1, 2).runs("q", "n2", 6701, 3).runs("q", "n2", 6703, 4));
        assertEquals(List.of("free n2:6701", "assign n2:6702"), cluster.touched);
    }

    @Test
    void aPlacedPlanTouchesNothingEvenWithFewerSlotsThanWorkers() {
        wishes.put("q", plan("q", 8, "n1:6701 1 2 3"));
        Scene.Watched cluster = pass(twoNodes().topology("q", 5, 3).runs("q", "n1", 6701, 1, 2, 3));
        assertEquals(List.of(), cluster.touched);
    }

    @Test
    void othersAreScheduledByStormAndKeepAManagedTopologyWhole() {
        wishes.put("q", plan("q", 1, "n1:6701 1 2 3"));
        Scene.Watched cluster = pass(twoNodes().topology("q", 5, 3).runs("q", "n1", 6701, 1, 2, 3).topology("other", 5,
            5));
        assertEquals(Map.of("n1:6701", Set.of(1, 2, 3)), placement(cluster, "q"));
        assertEquals(Set.of(1, 2, 3, 4, 5), tasks(cluster, "other"));
        assertEquals(5, placement(cluster, "other").size());
        assertFalse(placement(cluster, "other").containsKey("n1:6701"));
        assertNull(cluster.getStatus("other-1-0"));
    }

    @Test
    void aTopologyWithoutAPlanKeepsStormsStatus() {
        Cluster cluster = pass(twoNodes().topology("other", 2, 2).status("other", "Fully Scheduled"));
        assertEquals("Fully Scheduled", cluster.getStatus("other-1-0"));
        assertEquals(Set.of(1, 2), tasks(cluster, "other"));
    }

    @Test
    void aWithdrawnPlanIsNotReportedAsPlaced() {
        Cluster cluster = pass(twoNodes().topology("q", 1, 1).runs("q", "n1", 6701, 1).status("q",
            "leeward: epoch 1 placed"));
        assertEquals("leeward: default scheduler: no plan", cluster.getStatus("q-1-0"));
    }

    @Test
    void duringARebalanceTheHiddenPlacementIsAssignedWhole() {
        wishes.put("q", plan("q", 9, "n1:6701 1", "n2:6701 2"));
        Scene.Watched cluster = pass(twoNodes().topology("q", 2, 2)); // runs, but Storm shows no assignment
        assertEquals(List.of("assign n1:6701", "assign n2:6701"), cluster.touched);
        assertTrue(snapshot.contains("{\"component\":\"c2\",\"tasks\":[2,2],\"node\":\"n2\",\"port\":6701}"), snapshot);
    }

    @Test
    void aMisfitOfACompleteTopologyTouchesNothing() {
        wishes.put("q", plan("q", 2, "127.0.0.99:6701 1 2"));
        Scene.Watched cluster = pass(twoNodes().topology("q", 3, 2).runs("q", "n1", 6701, 1, 2));
        assertEquals(List.of(), cluster.touched);
        assertEquals("leeward: default scheduler: plan names unknown node '127.0.0.99'", cluster.getStatus("q-1-0"));
    }

    @Test
    void aFirstPlacementPlacesATopologyOfWhichNothingRuns() {
        wishes.put("q", plan("q", 0, "n1:6702 1", "n2:6701 2"));
        Scene.Watched cluster = pass(twoNodes().topology("q", 2, 2));
        assertEquals(List.of("assign n1:6702", "assign n2:6701"), cluster.touched);
        assertEquals(List.of(), pass(twoNodes().topology("q", 2, 2).runs("q", "n1", 6702, 1).runs("q", "n2", 6701, 2))
            .touched);
    }

    @Test
    void aFirstPlacementThatComesAfterStormsOwnMovesNothing() {
        wishes.put("q", plan("q", 0, "n1:6702 1", "n2:6701 2"));
        Scene.Watched cluster = pass(twoNodes().topology("q", 2, 2).runs("q", "n1", 6701, 1, 2));
        assertEquals(List.of(), cluster.touched);
        assertEquals("leeward: default scheduler: plan is a first placement, and Storm has placed the topology "
            + "otherwise", cluster.getStatus("q-1-0"));
    }

    @Test
    void aNewTopologyMayWaitForItsFirstPlan() {
        Scene.Watched cluster = pass(twoNodes().waiting("q", 2, 2, 3, 20).topology("other", 2, 2));
        assertEquals(Map.of(), placement(cluster, "q"));
        assertEquals(Set.of(1, 2), tasks(cluster, "other"));
        assertEquals("leeward: waits for its first plan", cluster.getStatus("q-1-0"));
        assertTrue(snapshot.contains("\"reason\":\"no plan\",\"waiting\":true,\"executors\":[{\"component\":\"c1\","
            + "\"tasks\":[1,1],\"node\":null,\"port\":null}"), snapshot);

        wishes.put("q", plan("q", 0, "n1:6702 1", "n2:6701 2"));
        assertEquals(Map.of("n1:6702", Set.of(1), "n2:6701", Set.of(2)),
            placement(pass(twoNodes().waiting("q", 2, 2, 4, 20)), "q"));
        assertFalse(snapshot.contains("waiting"), snapshot);
    }

    @Test
    void aTopologyThatHasWaitedLongEnoughIsPlacedByStorm() {
        Cluster cluster = pass(twoNodes().waiting("q", 2, 2, 21, 20).status("q", "leeward: waits for its first plan"));
        assertEquals(Set.of(1, 2), tasks(cluster, "q"));
        assertEquals("leeward: default scheduler: no plan", cluster.getStatus("q-1-0"));
        assertEquals(Set.of(1, 2), tasks(pass(twoNodes().waiting("r", 2, 2, 0, "20")), "r"), "no number: no wait");
        wishes.put("s", new Wish.Unreadable("plan is malformed"));
        assertEquals(Set.of(1, 2), tasks(pass(twoNodes().waiting("s", 2, 2, 0, 20)), "s"), "there is one");
    }

    @Test
    void aTopologyThatRunsDoesNotWait() {
        Scene.Watched cluster = pass(twoNodes().waiting("q", 2, 2, 3, 20).runs("q", "n1", 6701, 1));
        assertEquals(Set.of(1, 2), tasks(cluster, "q"), "an executor that is lost is placed at once");
    }

    @Test
    void aTopologyWhosePlacementIsHiddenInARebalanceDoesNotWait() {
        pass(twoNodes().waiting("q", 2, 2, 3, 20).runs("q", "n1", 6701, 1, 2));
        assertEquals(Set.of(1, 2), tasks(pass(twoNodes().waiting("q", 2, 2, 4, 20)), "q"));
    }

    @Test
    void itWaitsAlsoBeforePlansHaveBeenRead() {
        read = false;
        assertEquals(Map.of(), placement(pass(twoNodes().waiting("q", 2, 2, 3, 20)), "q"));
    }

    @Test
    void aMisfitOfANewTopologyIsPlacedByStorm() {
        wishes.put("q", new Wish.Unreadable("plan is malformed"));
        Cluster cluster = pass(twoNodes().topology("q", 2, 4));
        assertEquals(Set.of(1, 2, 3, 4), tasks(cluster, "q"));
        assertEquals(2, placement(cluster, "q").size());
        assertEquals("leeward: default scheduler: plan is malformed", cluster.getStatus("q-1-0"));
    }

    @Test
    void whenASupervisorDiesItsExecutorsMoveAndTheOthersStay() {
        wishes.put("q", plan("q", 3, "n1:6701 1", "n1:6702 2", "n2:6701 3 4", "n2:6702 5"));
        Scene scene = twoNodes().without("n2").supervisor("n3", 6701, 6702, 6703).topology("q", 1, 5)
            .runs("q", "n1", 6701, 1).runs("q", "n1", 6702, 2); // 3, 4 and 5 are dead
        Scene.Watched cluster = pass(scene);
        assertEquals(Set.of(1, 2, 3, 4, 5), tasks(cluster, "q"));
        assertEquals(Set.of(1), placement(cluster, "q").get("n1:6701"));
        assertEquals(Set.of(2), placement(cluster, "q").get("n1:6702"));
        assertEquals(4, placement(cluster, "q").size());
        assertTrue(cluster.touched.stream().allMatch(touch -> touch.startsWith("assign")), cluster.touched.toString());
        assertEquals("leeward: default scheduler: plan names unknown node 'n2'", cluster.getStatus("q-1-0"));

        Scene.Watched next = nextPass(scene, cluster);
        assertEquals(List.of(), next.touched);
    }

    private Scene.Watched nextPass(Scene scene, Cluster before) {
        before.getAssignmentById("q-1-0").getExecutorToSlot().forEach((executor, slot) ->
            scene.runs("q", slot.getNodeId().substring(2), slot.getPort(), executor.getStartTask()));
        return pass(scene);
    }

    @Test
    void anExecutorOnALostSupervisorThatStillRunsIsLeftAlone() {
        wishes.put("q", plan("q", 3, "n1:6701 1", "n2:6701 2"));
        Scene.Watched cluster = pass(twoNodes().without("n2").topology("q", 2, 2).runs("q", "n1", 6701, 1).runs("q",
            "n2", 6701, 2));
        assertEquals(List.of(), cluster.touched);
        assertTrue(snapshot.contains("{\"component\":\"c2\",\"tasks\":[2,2],\"node\":null,\"port\":null}"), snapshot);
    }

    /** Both workers of q live. */
    private static Scene whole() {
        return new Scene().supervisor("n1", 6701, 6702, 6703).supervisor("n2", 6701, 6702, 6703, 6704, 6705)
            .topology("q", 2, 2).runs("q", "n1", 6701, 1).runs("q", "n2", 6701, 2);
    }

    /** The second worker of q has died: Nimbus withholds its port as long as no new one has sent a heartbeat. */
    private static Scene withheld() {
        return new Scene().supervisor("n1", 6701, 6702, 6703).supervisor("n2", 6702, 6703, 6704, 6705)
            .topology("q", 2, 2).runs("q", "n1", 6701, 1);
    }

    /** The node n2 is gone, and with it the second worker of q. */
    private static Scene gone() {
        return new Scene().supervisor("n1", 6701, 6702, 6703).topology("q", 2, 2).runs("q", "n1", 6701, 1);
    }

    /** The node n2 is back, and the second executor of q has been placed on n1. */
    private static Scene backAgain() {
        return new Scene().supervisor("n1", 6701, 6702, 6703).supervisor("n2", 6701, 6702, 6703, 6704, 6705)
            .topology("q", 2, 2).runs("q", "n1", 6701, 1).runs("q", "n1", 6702, 2);
    }

    @Test
    void aDeadWorkersExecutorsStayInItsSlotWhileTheNodeIsThere() {
        wishes.put("q", plan("q", 4, "n1:6701 1", "n2:6701 2"));
        pass(whole());
        for (int pass = 0; pass < 3; pass++) {
            Scene.Watched cluster = pass(withheld());
            assertEquals(Map.of("n1:6701", Set.of(1), "n2:6701", Set.of(2)), placement(cluster, "q"));
            assertEquals(List.of("assign n2:6701"), cluster.touched);
            assertEquals("leeward: epoch 4 placed", cluster.getStatus("q-1-0"));
            assertTrue(snapshot.contains("\"node\":\"n2\",\"ports\":[6701,6702,6703,6704,6705]"), snapshot);
        }
        assertEquals(List.of(), pass(whole()).touched);
    }

    @Test
    void aNimbusThatStartedAfterTheLossKeepsTheSlotToo() {
        wishes.put("q", plan("q", 4, "n1:6701 1", "n2:6701 2"));
        Scene.Watched cluster = pass(withheld());
        assertEquals(Map.of("n1:6701", Set.of(1), "n2:6701", Set.of(2)), placement(cluster, "q"));
        assertTrue(snapshot.contains("\"node\":\"n2\",\"ports\":[6701,6702,6703,6704,6705]"), snapshot);
    }

    @Test
    void aPlanMayMoveALivingWorkerWhileAnotherIsDead() {
        pass(whole());
        wishes.put("q", plan("q", 5, "n1:6702 1", "n2:6701 2"));
        Scene.Watched cluster = pass(withheld());
        assertEquals(Map.of("n1:6702", Set.of(1), "n2:6701", Set.of(2)), placement(cluster, "q"));
    }

    @Test
    void aPortThatWasNeverOfferedIsRefusedBesideADeadWorker() {
        pass(whole());
        wishes.put("q", plan("q", 4, "n1:6701 1", "n2:6709 2"));
        Cluster cluster = pass(withheld());
        assertEquals("leeward: default scheduler: plan names port 6709, which node 'n2' does not offer",
            cluster.getStatus("q-1-0"));
    }

    @Test
    void aPortThatIsMissingWhileAllLiveIsOfferedNoLonger() {
        pass(whole());
        pass(new Scene().supervisor("n1", 6701, 6702, 6703).supervisor("n2", 6702).topology("q", 2, 2)
            .runs("q", "n1", 6701, 1).runs("q", "n2", 6702, 2));
        wishes.put("q", plan("q", 4, "n1:6701 1", "n2:6701 2"));
        Cluster cluster = pass(withheld());
        assertEquals("leeward: default scheduler: plan names port 6701, which node 'n2' does not offer",
            cluster.getStatus("q-1-0"));
    }

    @Test
    void aWithheldSlotBelongsToTheTopologyWhoseWorkerDiedThere() {
        pass(whole().topology("a", 1, 1).runs("a", "n1", 6702, 1));
        wishes.put("a", plan("a", 1, "n2:6701 1"));
        wishes.put("q", plan("q", 4, "n1:6701 1", "n2:6701 2"));
        Cluster cluster = pass(withheld().topology("a", 1, 1).runs("a", "n1", 6702, 1));
        assertEquals("leeward: default scheduler: plan wants slot n2:6701, which topology 'q-1-0' uses",
            cluster.getStatus("a-1-0"));
        assertEquals(Map.of("n1:6701", Set.of(1), "n2:6701", Set.of(2)), placement(cluster, "q"));
    }

    @Test
    void aLostNodesExecutorsGoToAnotherNodeAtOnceAndStayThere() {
        wishes.put("q", plan("q", 4, "n1:6701 1", "n2:6701 2"));
        pass(whole());
        Cluster cluster = pass(gone());
        assertEquals(Map.of("n1:6701", Set.of(1), "n1:6702", Set.of(2)), placement(cluster, "q"));
        assertEquals("leeward: default scheduler: plan names unknown node 'n2'", cluster.getStatus("q-1-0"));

        Scene.Watched next = pass(backAgain());
        assertEquals(List.of(), next.touched);
        assertEquals("leeward: default scheduler: plan was given up and has to fit for 30 passes first "
            + "(plan names unknown node 'n2')", next.getStatus("q-1-0"));
    }

    @Test
    void aPlanThatWasGivenUpIsFollowedAgainWhenItHasFittedForLong() {
        wishes.put("q", plan("q", 4, "n1:6701 1", "n2:6701 2"));
        pass(gone());
        for (int pass = 0; pass < 10; pass++) {
            assertEquals(List.of(), pass(backAgain()).touched);
        }
        pass(backAgain().without("n2")); // counting starts anew
        for (int pass = 0; pass < Setbacks.PASSES; pass++) {
            assertEquals(List.of(), pass(backAgain()).touched, "pass " + pass);
        }
        assertEquals(List.of("free n1:6702", "assign n2:6701"), pass(backAgain()).touched);
        assertEquals(List.of("free n1:6702", "assign n2:6701"), pass(backAgain()).touched, "the setback is over");
    }

    @Test
    void anotherPlanIsFollowedAtOnceAfterASetback() {
        wishes.put("q", plan("q", 4, "n1:6701 1", "n2:6701 2"));
        pass(gone());
        wishes.put("q", plan("q", 5, "n1:6701 1", "n2:6701 2"));
        assertEquals("leeward: epoch 5 placed", pass(backAgain()).getStatus("q-1-0"));
    }

    @Test
    void aRebalanceEndsASetback() {
        wishes.put("q", plan("q", 4, "n1:6701 1", "n2:6701 2"));
        pass(gone());
        Scene hidden = new Scene().supervisor("n1", 6701, 6702, 6703).supervisor("n2", 6701, 6702).topology("q", 2, 2);
        assertEquals("leeward: epoch 4 placed", pass(hidden).getStatus("q-1-0"));
    }

    @Test
    void aMisfitThatMovedNothingIsNoSetback() {
        wishes.put("q", plan("q", 4, "n1:6701 1", "n2:6701 2"));
        pass(backAgain().without("n2"));
        assertEquals("leeward: epoch 4 placed", pass(backAgain()).getStatus("q-1-0"));
    }

    @Test
    void aNodeThatLostAWorkerIsUsedIfThereIsNoOther() {
        wishes.put("q", plan("q", 4, "n1:6701 1", "n2:6701 2", "n9:6701 3"));
        Cluster cluster = pass(new Scene().supervisor("n1", 6701).supervisor("n2", 6702).topology("q", 2, 3).runs("q",
            "n1", 6701, 1));
        assertEquals(Map.of("n1:6701", Set.of(1), "n2:6702", Set.of(2, 3)), placement(cluster, "q"));
    }

    @Test
    void aBlacklistedNodeIsNotUsable() {
        wishes.put("q", plan("q", 5, "n2:6701 1 2"));
        Cluster cluster = pass(twoNodes().blacklist("n2").topology("q", 1, 2));
        assertEquals("leeward: default scheduler: plan names blacklisted node 'n2'", cluster.getStatus("q-1-0"));
        assertEquals(Set.of("n1"), Set.copyOf(placement(cluster, "q").keySet().stream().map(s -> s.split(":")[0])
            .toList()));
        assertTrue(snapshot.contains("\"blacklisted\":true"), snapshot);
    }

    @Test
    void topologiesHandSlotsToEachOtherInOnePass() {
        wishes.put("a", plan("a", 1, "n2:6701 1"));
        wishes.put("b", plan("b", 1, "n1:6701 1"));
        Cluster cluster = pass(twoNodes().topology("a", 1, 1).runs("a", "n1", 6701, 1).topology("b", 1, 1).runs("b",
            "n2", 6702, 1));
        assertEquals(Map.of("n2:6701", Set.of(1)), placement(cluster, "a"));
        assertEquals(Map.of("n1:6701", Set.of(1)), placement(cluster, "b"));
    }

    @Test
    void ofTwoPlansForOneSlotTheFirstTopologyWins() {
        wishes.put("a", plan("a", 1, "n1:6701 1"));
        wishes.put("b", plan("b", 1, "n1:6701 1"));
        Cluster cluster = pass(twoNodes().topology("a", 1, 1).topology("b", 1, 1));
        assertEquals(Map.of("n1:6701", Set.of(1)), placement(cluster, "a"));
        assertEquals("leeward: default scheduler: plan wants slot n1:6701, which topology 'a-1-0' uses",
            cluster.getStatus("b-1-0"));
        assertEquals(Set.of(1), tasks(cluster, "b"));
    }

    @Test
    void severalSupervisorsMayShareAHost() {
        wishes.put("q", plan("q", 1, "n1:6801 1", "n1:6701 2"));
        Cluster cluster = pass(new Scene().supervisor("n1", 6701).another("s-n1b", "n1", 6801).topology("q", 1, 2));
        assertEquals(Map.of("n1:6701", Set.of(2), "n1b:6801", Set.of(1)), placement(cluster, "q"));
    }

    @Test
    void untilPlansAreReadWhatRunsStaysAndWhatDoesNotIsPlaced() {
        read = false;
        Scene.Watched cluster = pass(twoNodes().topology("q", 5, 3).runs("q", "n1", 6701, 1, 2, 3).topology("fresh", 2,
            2));
        assertEquals(Map.of("n1:6701", Set.of(1, 2, 3)), placement(cluster, "q"));
        assertEquals(Set.of(1, 2), tasks(cluster, "fresh"));
        assertNull(cluster.getStatus("q-1-0"));
        assertTrue(snapshot.contains("\"reason\":\"plans not read yet\""), snapshot);
    }

    @Test
    void aFailureIsSwallowedReportedAndUndone() {
        broken = new IllegalStateException("broken on purpose");
        Scene.Watched cluster = pass(twoNodes().topology("q", 5, 3).runs("q", "n1", 6701, 1, 2, 3).topology("fresh", 2,
            2));
        assertEquals(Map.of("n1:6701", Set.of(1, 2, 3)), placement(cluster, "q"));
        assertEquals(Set.of(1, 2), tasks(cluster, "fresh"));
        assertTrue(cluster.getStatus("q-1-0").contains("the plugin failed: java.lang.IllegalStateException: broken on purpose"));
    }

    @Test
    void executorsOfSeveralTasksAreStorms() {
        wishes.put("q", plan("q", 1, "n1:6701 1 2"));
        Cluster cluster = pass(twoNodes().topology("q", 1, Map.of(new ExecutorDetails(1, 2), "c")));
        assertEquals("leeward: default scheduler: topology has an executor of several tasks, [1, 2]",
            cluster.getStatus("q-1-0"));
        assertEquals(Set.of(1), tasks(cluster, "q"));
    }

    @Test
    void theSnapshotTellsWhatNimbusSees() {
        wishes.put("q", plan("q", 7, "n1:6702 1 2"));
        pass(new Scene().supervisor("n2").supervisor("n1", 6702, 6701).topology("q", 1, 2));
        assertEquals("{\"version\":1,\"supervisors\":["
            + "{\"id\":\"s-n1\",\"node\":\"n1\",\"ports\":[6701,6702],\"meta\":{\"zone\":\"edge\"},\"blacklisted\":false},"
            + "{\"id\":\"s-n2\",\"node\":\"n2\",\"ports\":[],\"meta\":{\"zone\":\"edge\"},\"blacklisted\":false}],"
            + "\"topologies\":[{\"id\":\"q-1-0\",\"name\":\"q\",\"managed\":true,\"epoch\":7,\"reason\":\"\",\"executors\":["
            + "{\"component\":\"c1\",\"tasks\":[1,1],\"node\":\"n1\",\"port\":6702},"
            + "{\"component\":\"c2\",\"tasks\":[2,2],\"node\":\"n1\",\"port\":6702}]}]}", snapshot);
    }
}
