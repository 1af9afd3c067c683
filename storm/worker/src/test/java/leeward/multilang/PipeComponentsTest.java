package leeward.multilang;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import org.apache.storm.generated.Bolt;
import org.apache.storm.generated.ComponentCommon;
import org.apache.storm.generated.ComponentObject;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.generated.Grouping;
import org.apache.storm.generated.JavaObject;
import org.apache.storm.generated.JavaObjectArg;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.metrics2.StormMetricRegistry;
import org.apache.storm.spout.ISpoutOutputCollector;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.IOutputCollector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.TupleImpl;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The bolt and the spout as Storm calls them, with shell scripts as their components. */
@Timeout(60)
class PipeComponentsTest {
    private static final String HELLO = """
        message() { while IFS= read -r line; do [ "$line" = end ] && return; text=$line; done; exit 3; }
        message
        printf '{"pid": %d}\\nend\\n' $$
        while :; do
          message
          case $text in
        """;
    private static final String BOLT = HELLO + """
            *__heartbeat*) echo >>heartbeats; printf '{"command": "sync"}\\nend\\n' ;;
            *poison*) exit 1 ;;
            *) case $text in *complain*) printf '{"command": "error", "msg": "why"}\\nend\\n' ;; esac
              id=${text#*\\"id\\":\\"}; printf '{"command": "ack", "id": "%s"}\\nend\\n' "${id%%\\"*}" ;;
          esac
        done
        """;
    private static final String EMIT =
        "printf '{\"command\": \"emit\", \"id\": \"a\", \"tuple\": [1], \"need_task_ids\": false}\\nend\\n'; ";
    private static final String DIE = "[ -e die ] && rm die && exit 1; ";

    @TempDir
    Path folder;
    private final Map<String, Object> conf = new HashMap<>();
    private TopologyContext context;

    @BeforeEach
    void configure() throws IOException {
        conf.put("topology.multilang.serializer", FrameSerializer.class.getName());
        conf.put("topology.subprocess.timeout.secs", 30);
        Files.writeString(folder.resolve("bolt.sh"), BOLT);
        Map<String, Map<String, Fields>> fields = Map.of("source", Map.of("default", new Fields("value")));
        Grouping keyed = Grouping.custom_object(
            new JavaObject("leeward.grouping.KeyedGrouping", List.of(JavaObjectArg.string_arg("value"))));
        ComponentCommon common = new ComponentCommon(Map.of(new GlobalStreamId("source", "default"), keyed), Map.of());
        StormTopology topology =
            new StormTopology(Map.of(), Map.of("count", new Bolt(new ComponentObject(), common)), Map.of());
        context = new TopologyContext(topology, conf, new TreeMap<>(Map.of(1, "source", 5, "count")),
            Map.of(), fields, Map.of(), "topology-1", folder.toString(), folder.toString(), 5, 6701, List.of(1, 5),
            new HashMap<>(), new HashMap<>(), new HashMap<>(), new HashMap<>(), new AtomicBoolean(),
            new StormMetricRegistry()) {
            @Override
            public String toJSONString() {
                return "{}";
            }
        };
    }

    private static void await(BooleanSupplier done) throws InterruptedException {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        while (!done.getAsBoolean()) {
            assertTrue(System.nanoTime() < until, "waited in vain");
            Thread.sleep(10);
        }
    }

    /** Storm's way with an error for its UI. */
    private interface Reporting {
        void report(Throwable error);
    }

    /** Reports that wait, as for ZooKeeper, until this is opened. */
    private static Reporting closed(CountDownLatch gate) {
        return error -> {
            try {
                gate.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        };
    }

    /** Keeps what a bolt says to Storm. */
    private static final class BoltRecord implements IOutputCollector {
        final List<Object> acked = Collections.synchronizedList(new ArrayList<>());
        final List<Object> failed = Collections.synchronizedList(new ArrayList<>());
        final List<Throwable> errors = Collections.synchronizedList(new ArrayList<>());
        Reporting reporting = error -> { };

        @Override
        public List<Integer> emit(String stream, Collection<Tuple> anchors, List<Object> tuple) {
            return List.of();
        }

        @Override
        public void emitDirect(int task, String stream, Collection<Tuple> anchors, List<Object> tuple) {
            throw new AssertionError("nothing is emitted");
        }

        @Override
        public void ack(Tuple input) {
            acked.add(input.getValues().get(0));
        }

        @Override
        public void fail(Tuple input) {
            failed.add(input.getValues().get(0));
        }

        @Override
        public void resetTimeout(Tuple input) {
            throw new AssertionError("not used");
        }

        @Override
        public void flush() {
            throw new AssertionError("not used");
        }

        @Override
        public void reportError(Throwable error) {
            errors.add(error);
            reporting.report(error);
        }
    }

    /** Sends a bolt tuples, with each of which its process reports an error. */
    private void complain(PipeBolt bolt, int times) {
        for (int i = 0; i < times; i++) {
            bolt.execute(new TupleImpl(context, List.of("complain"), "source", 1, "default"));
        }
    }

    @Test
    void aBoltIsReadFromWhileItsErrorsCannotBeReported() throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        BoltRecord record = new BoltRecord();
        record.reporting = closed(gate);
        PipeBolt bolt = new PipeBolt("/bin/sh", "bolt.sh");
        bolt.prepare(conf, context, new OutputCollector(record));
        try {
            complain(bolt, 100);
            await(() -> record.acked.size() == 100);
            assertEquals(List.of(), record.failed);
            gate.countDown();
            await(() -> record.errors.size() > 1);
        } finally {
            gate.countDown();
            bolt.cleanup();
        }
    }

    @Test
    void anErrorThatStormRefusesEndsNoProcessAndNoThread() throws Exception {
        List<Throwable> uncaught = Collections.synchronizedList(new ArrayList<>());
        Thread.UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> uncaught.add(error));
        BoltRecord record = new BoltRecord();
        record.reporting = error -> {
            throw new IllegalStateException("ZooKeeper is away");
        };
        PipeBolt bolt = new PipeBolt("/bin/sh", "bolt.sh");
        bolt.prepare(conf, context, new OutputCollector(record));
        try {
            complain(bolt, 3);
            await(() -> record.acked.size() == 3 && record.errors.size() == 3);
            assertEquals(List.of(), record.failed);
            assertEquals(List.of(), uncaught);
            assertTrue(record.errors.stream().allMatch(error -> error.getMessage().contains("why")));
        } finally {
            bolt.cleanup();
            Thread.setDefaultUncaughtExceptionHandler(before);
        }
    }

    @Test
    void tuplesThatALostProcessHadReceivedFailAndOthersAreAcked() throws Exception {
        BoltRecord record = new BoltRecord();
        PipeBolt bolt = new PipeBolt("/bin/sh", "bolt.sh");
        bolt.prepare(conf, context, new OutputCollector(record));
        try {
            List<String> sent = List.of("first", "poison", "close behind", "later");
            for (String value : sent) {
                bolt.execute(new TupleImpl(context, List.of(value), "source", 1, "default"));
                if (value.equals("close behind")) {
                    await(() -> record.failed.contains("poison"));
                }
            }
            await(() -> record.acked.size() + record.failed.size() == sent.size());
            assertTrue(record.acked.containsAll(List.of("first", "later")), record.acked.toString());
            assertFalse(record.acked.contains("poison"));
            await(() -> record.errors.size() == 1);
            assertTrue(record.errors.get(0).getMessage().contains("was started in its place"));
            await(() -> Files.exists(folder.resolve("heartbeats")));
        } finally {
            bolt.cleanup();
        }
    }

    /** Keeps what a spout emits; acks it at once, as Storm does without ackers, if it knows the spout. */
    private static final class SpoutRecord implements ISpoutOutputCollector {
        final List<Object> ids = new ArrayList<>();
        PipeSpout acked;
        Reporting reporting = error -> assertTrue(error.getMessage().contains("in its place"), error.getMessage());
        int depth;
        int deepest;

        @Override
        public List<Integer> emit(String stream, List<Object> tuple, Object id) {
            ids.add(id);
            deepest = Math.max(deepest, ++depth);
            if (acked != null && ids.size() < 100) {
                acked.ack(id);
            }
            depth--;
            return List.of(5);
        }

        @Override
        public void emitDirect(int task, String stream, List<Object> tuple, Object id) {
            throw new AssertionError("not used");
        }

        @Override
        public long getPendingCount() {
            return 0;
        }

        @Override
        public void flush() {
            throw new AssertionError("not used");
        }

        @Override
        public void reportError(Throwable error) {
            reporting.report(error);
        }
    }

    /** An active spout, whose process does this for a command and then says that it has carried it out. */
    private PipeSpout spout(SpoutRecord record, String cases) throws IOException {
        Files.writeString(folder.resolve("spout.sh"), HELLO + cases + """
              esac
              printf '%s\\n' "$text" >>commands
              printf '{"command": "sync"}\\nend\\n'
            done
            """);
        PipeSpout spout = new PipeSpout("/bin/sh", "spout.sh");
        spout.open(conf, context, new SpoutOutputCollector(record));
        spout.activate();
        return spout;
    }

    /** All commands that the spout's processes have read, but for one that ended its process. */
    private String commands() throws IOException {
        return String.join(" ", Files.readAllLines(folder.resolve("commands")).stream()
            .map(line -> line.contains("\"") ? line.split("\"")[3] : line).toList());
    }

    @Test
    void aNewProcessOfASpoutIsActivatedAndHearsNothingOfOldTuples() throws Exception {
        SpoutRecord record = new SpoutRecord();
        PipeSpout spout = spout(record, "*next*) " + DIE + EMIT + ";;\n");
        try {
            spout.nextTuple();
            assertEquals(1, record.ids.size());
            Files.createFile(folder.resolve("die"));
            spout.nextTuple();
            await(() -> {
                spout.nextTuple(); // returns at once while there is no process
                return record.ids.size() > 1;
            });
            spout.ack(record.ids.get(0));
            spout.fail(record.ids.get(1));
            spout.deactivate();
            assertEquals("activate next activate next fail deactivate", commands());
        } finally {
            spout.close();
        }
    }

    @Test
    void acksWithinANextAreSentBehindIt() throws Exception {
        SpoutRecord record = new SpoutRecord();
        PipeSpout spout = spout(record, "*next*) " + EMIT + EMIT + EMIT + ";;\n");
        try {
            record.acked = spout;
            spout.nextTuple();
            spout.nextTuple();
            assertEquals("activate next ack ack ack next ack ack ack", commands());
            assertEquals(1, record.deepest, "exchanges within one another");
        } finally {
            spout.close();
        }
    }

    @Test
    void aSpoutThatWaitsForTaskIdsGetsThemBeforeTheAck() throws Exception {
        SpoutRecord record = new SpoutRecord();
        PipeSpout spout = spout(record, "*next*) " + EMIT.replace("false", "true")
            + "message; printf '%s\\n' \"$text\" >>commands; text='\"command\":\"next\"';;\n");
        try {
            record.acked = spout;
            spout.nextTuple();
            assertEquals("activate [5] next ack", commands());
        } finally {
            spout.close();
        }
    }

    @Test
    void aSpoutThatEmitsForEachAckLeavesNextTupleAndIsDeactivated() throws Exception {
        SpoutRecord record = new SpoutRecord();
        PipeSpout spout = spout(record, "*next*|*ack*) " + EMIT + ";;\n");
        try {
            record.acked = spout;
            spout.nextTuple();
            assertEquals("activate next ack", commands());
            spout.nextTuple();
            assertEquals("activate next ack ack next ack ack", commands());
            spout.deactivate();
            assertEquals("activate next ack ack next ack ack ack ack deactivate ack ack", commands());
        } finally {
            spout.close();
        }
    }

    @Test
    void aProcessThatIsLostAtAnAckTakesTheOtherAcksAlong() throws Exception {
        SpoutRecord record = new SpoutRecord();
        PipeSpout spout = spout(record, "*next*) " + EMIT + EMIT + ";;\n*ack*) " + DIE + ";;\n");
        try {
            record.acked = spout;
            Files.createFile(folder.resolve("die"));
            spout.nextTuple();
            assertEquals(2, record.ids.size());
            await(() -> {
                spout.nextTuple();
                return record.ids.size() > 2;
            });
            assertEquals("activate next activate next ack ack", commands());
        } finally {
            spout.close();
        }
    }

    @Test
    void aSpoutGoesOnWhileItsErrorsCannotBeReported() throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        SpoutRecord record = new SpoutRecord();
        record.reporting = closed(gate);
        PipeSpout spout =
            spout(record, "*next*) printf '{\"command\": \"error\", \"msg\": \"why\"}\\nend\\n'; " + EMIT + ";;\n");
        try {
            spout.nextTuple();
            spout.nextTuple();
            assertEquals("activate next next", commands());
        } finally {
            gate.countDown();
            spout.close();
        }
    }
}
