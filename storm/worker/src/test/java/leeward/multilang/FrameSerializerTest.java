package leeward.multilang;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PipedInputStream;
import java.io.PipedOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.storm.multilang.BoltMsg;
import org.apache.storm.multilang.NoOutputException;
import org.apache.storm.multilang.ShellMsg;
import org.apache.storm.multilang.SpoutMsg;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The worker's side, with the test in place of the component. */
@Timeout(60)
class FrameSerializerTest {
    private final List<byte[]> written = Collections.synchronizedList(new ArrayList<>());
    private FrameSerializer serializer;
    private PipedOutputStream component;
    private volatile Runnable stalled = () -> { };

    @BeforeEach
    void open() throws IOException {
        component = new PipedOutputStream();
        OutputStream toComponent = new OutputStream() {
            @Override
            public void write(int octet) {
                throw new AssertionError("byte by byte");
            }

            @Override
            public void write(byte[] bytes, int from, int length) {
                stalled.run();
                written.add(Arrays.copyOfRange(bytes, from, from + length));
            }
        };
        serializer = new FrameSerializer();
        serializer.initialize(toComponent, new PipedInputStream(component, 1 << 20));
    }

    @AfterEach
    void close() throws IOException {
        component.close();
    }

    private void connect(String answer, Object ackers) throws Exception {
        component.write((answer + "\nend\n").getBytes(StandardCharsets.UTF_8));
        Map<String, Object> conf = new HashMap<>();
        conf.put("topology.acker.executors", ackers);
        conf.put("nested", Arrays.asList(1, Collections.singletonMap("a", null)));
        assertEquals(17L, serializer.connect(conf, "{\"taskid\":5}", "/pids", "task 5 of component 'count'"));
    }

    private void connectBinary(boolean ids) throws Exception {
        connect("{\"pid\": 17, \"leeward.pipe\": 2}", ids ? 1 : 0);
        written.clear();
    }

    private static BoltMsg tuple(String id, String component, String stream, long task, List<Object> values) {
        BoltMsg message = new BoltMsg();
        message.setId(id);
        message.setComp(component);
        message.setStream(stream);
        message.setTask(task);
        message.setTuple(values);
        return message;
    }

    /** As PipeBolt sends a tuple that has no id. */
    private void send(String component, String stream, long task, List<Object> values) throws IOException {
        serializer.dialect().tuple(null, component, stream, task, -1, values);
    }

    private void say(String hex) throws IOException {
        byte[] body = Vectors.bytes(hex);
        byte[] header = {(byte) 0xc1, 'L', 'W', 1, 0, 0, (byte) (body.length >> 8), (byte) body.length};
        component.write(header);
        component.write(body);
        component.flush();
    }

    @Test
    void offersFramesInStormsOwnHandshake() throws Exception {
        connect("{\"pid\": 17}", 0);
        String hello = new String(written.get(0), StandardCharsets.UTF_8);
        assertTrue(hello.endsWith("\nend\n"));
        Map<?, ?> told = (Map<?, ?>) Json.parse(hello.substring(0, hello.length() - 5));
        assertEquals(Map.of("version", 2L, "ids", false), told.get("leeward.pipe"));
        assertEquals("/pids", told.get("pidDir"));
        assertEquals(Map.of("taskid", 5L), told.get("context"));
        assertEquals(0L, ((Map<?, ?>) told.get("conf")).get("topology.acker.executors"));
    }

    @Test
    void idsTravelUnlessThereAreSurelyNoAckers() throws Exception {
        connect("{\"pid\": 17}", null); // Storm's default: as many ackers as workers
        assertTrue(new String(written.get(0), StandardCharsets.UTF_8).startsWith(
            "{\"leeward.pipe\":{\"version\":2,\"ids\":true}"));
    }

    @Test
    void anAnswerWithoutPidIsNamed() {
        IOException error = assertThrows(IOException.class, () -> connect("{\"oops\": 1}", 0));
        assertTrue(error.getMessage().contains("task 5 of component 'count' answered the handshake with {oops=1}"));
    }

    @Test
    @SuppressWarnings("unchecked")
    void writesWhatTheVectorsSay() throws Exception {
        for (Object each : (List<?>) Vectors.read().get("to_component")) {
            Map<?, ?> vector = (Map<?, ?>) each;
            FrameSerializer other = new FrameSerializer();
            PipedOutputStream answer = new PipedOutputStream();
            List<String> hexes = new ArrayList<>();
            other.initialize(new OutputStream() {
                @Override
                public void write(int octet) {
                    throw new AssertionError("byte by byte");
                }

                @Override
                public void write(byte[] bytes, int from, int length) {
                    hexes.add(Vectors.hex(bytes, from, from + length));
                }
            }, new PipedInputStream(answer));
            answer.write("{\"pid\": 1, \"leeward.pipe\": 2}\nend\n".getBytes(StandardCharsets.UTF_8));
            Object ackers = Boolean.TRUE.equals(vector.get("ids")) ? 1 : 0;
            other.connect(Collections.singletonMap("topology.acker.executors", ackers), "{}", "/", "task 1");
            hexes.clear();
            for (Object write : (List<?>) vector.get("writes")) {
                List<Object> parts = (List<Object>) write;
                if (parts.get(0).equals("tuple")) {
                    other.dialect().tuple((String) parts.get(1), (String) parts.get(2), (String) parts.get(3),
                        (Long) parts.get(4), parts.get(5) == null ? -1 : ((Long) parts.get(5)).intValue(),
                        (List<Object>) parts.get(6));
                } else if (parts.get(0).equals("command")) {
                    SpoutMsg message = new SpoutMsg();
                    message.setCommand((String) parts.get(1));
                    message.setId(parts.get(2));
                    other.writeSpoutMsg(message);
                } else {
                    List<Integer> tasks = new ArrayList<>();
                    ((List<Object>) parts.get(1)).forEach(task -> tasks.add(((Long) task).intValue()));
                    other.writeTaskIds(tasks);
                }
            }
            assertEquals(vector.get("hex"), hexes, () -> "" + vector.get("what"));
        }
    }

    @Test
    void readsWhatTheVectorsSay() throws Exception {
        connectBinary(true);
        for (Object each : (List<?>) Vectors.read().get("from_component")) {
            Map<?, ?> vector = (Map<?, ?>) each;
            Map<?, ?> want = (Map<?, ?>) vector.get("message");
            say((String) vector.get("hex"));
            ShellMsg message = serializer.readShellMsg();
            assertEquals(want.get("command"), message.getCommand());
            if ("emit".equals(message.getCommand())) {
                assertEquals(want.get("stream"), message.getStream());
                assertEquals(want.get("tuple"), message.getTuple());
                assertEquals(want.get("anchors"), message.getAnchors());
                assertEquals(want.get("task"), message.getTask());
                assertEquals(want.get("need_task_ids"), message.areTaskIdsNeeded());
            }
            assertEquals(want.get("id"), message.getId());
            assertEquals(want.get("msg"), message.getMsg());
            assertEquals(want.get("name"), message.getMetricName());
            assertEquals(want.get("params"), message.getMetricParams());
            if (want.get("level") != null) {
                assertEquals(want.get("level"), message.getLogLevel().toString());
            }
        }
    }

    @Test
    void withoutIdsOnlyABoltThatKnowsOfThatIsSentTuples() throws Exception {
        connectBinary(false);
        IOException error = assertThrows(IOException.class, () -> serializer.writeBoltMsg(
            tuple("11", "pass", "default", 4, List.of("a"))));
        assertTrue(error.getMessage().contains("leeward.multilang.PipeBolt"), error.getMessage());
    }

    @Test
    void aComponentCannotHaveTakenMoreThanItGot() throws Exception {
        connectBinary(false);
        send("pass", "default", 4, List.of("a"));
        serializer.dialect().heartbeat();
        send("__system", "__tick", -1, List.of(1));
        say("92ff0391fc"); // three taken; sync
        assertEquals("sync", serializer.readShellMsg().getCommand());
        say("92ff01");
        IOException error = assertThrows(IOException.class, serializer::readShellMsg);
        assertTrue(error.getMessage().contains("more tuples than it got"), error.getMessage());
    }

    @Test
    void aHeartbeatDoesNotWaitForAnotherWriter() throws Exception {
        for (String answer : List.of("{\"pid\": 17, \"leeward.pipe\": 2}", "{\"pid\": 17}")) {
            close();
            open();
            connect(answer, 0);
            written.clear();
            CountDownLatch writing = new CountDownLatch(1);
            CountDownLatch done = new CountDownLatch(1);
            stalled = () -> {
                writing.countDown();
                assertDoesNotThrow(() -> done.await());
            };
            Thread writer = new Thread(() -> assertDoesNotThrow(() -> send("pass", "default", 4, List.of("a"))));
            writer.start();
            writing.await();
            serializer.dialect().heartbeat(); // would wait for ever
            stalled = () -> { };
            done.countDown();
            writer.join();
            int before = written.size();
            serializer.dialect().heartbeat();
            assertTrue(written.size() > before);
        }
    }

    @Test
    void noMoreThanAWindowIsUnderWay() throws Exception {
        connectBinary(false);
        AtomicInteger sent = new AtomicInteger();
        Thread writer = new Thread(() -> {
            for (int n = 0; n < 3 * BinaryDialect.WINDOW; n++) {
                long number = n;
                assertDoesNotThrow(() -> send("pass", "default", 4, List.of(number)));
                sent.incrementAndGet();
            }
        });
        writer.start();
        for (int taken = 0; taken < 2 * BinaryDialect.WINDOW; taken += BinaryDialect.WINDOW) {
            while (sent.get() < taken + BinaryDialect.WINDOW) {
                Thread.sleep(1);
            }
            Thread.sleep(50);
            assertEquals(taken + BinaryDialect.WINDOW, sent.get());
            say(String.format("92ffcd%04x91fc", BinaryDialect.WINDOW));
            assertEquals("sync", serializer.readShellMsg().getCommand());
        }
        writer.join();
    }

    @Test
    void aWriterThatWaitsForRoomHearsOfTheEnd() throws Exception {
        connectBinary(false);
        for (int n = 0; n < BinaryDialect.WINDOW; n++) {
            send("pass", "default", 4, List.of((long) n));
        }
        component.close();
        assertThrows(NoOutputException.class, serializer::readShellMsg);
        assertTrue(assertThrows(IOException.class, () -> send("pass", "default", 4, List.of())).getMessage()
            .contains("the process of task 5 of component 'count' has ended"));
    }

    @Test
    void packedValuesAreCopiedAsTheyAre() throws Exception {
        connectBinary(false);
        say("93f800a764656661756c74" + "920094a161cd0101cb3ff8000000000000810203"); // ["a", 257, 1.5, {2: 3}]
        List<Object> values = serializer.readShellMsg().getTuple();
        assertEquals(PackedValues.class, values.getClass());
        assertEquals(List.of("a", 257L, 1.5, Map.of(2L, 3L)), values);
        assertEquals(1.5, values.get(2));
        assertThrows(IndexOutOfBoundsException.class, () -> values.get(4));
        send("pass", "default", 4, values);
        byte[] frame = written.get(written.size() - 1);
        assertEquals("0094a161cd0101cb3ff8000000000000810203", Vectors.hex(frame, Frames.PREFIX, frame.length));
    }

    @Test
    void markersAreNotPackedBecauseGroupingsWriteIntoThem() throws Exception {
        connectBinary(false);
        say("93f800a66d61726b6572" + "92009201a0"); // [1, ""] on stream marker
        List<Object> values = serializer.readShellMsg().getTuple();
        values.set(1, "4:17");
        assertEquals(List.of(1L, "4:17"), values);
    }

    @Test
    void rareMessagesLeaveAtOnceAndFrequentOnesInBatchesWithinMilliseconds() throws Exception {
        connectBinary(false);
        send("pass", "default", 4, List.of("first"));
        assertEquals(2, written.size()); // the channel's definition, the tuple
        for (int n = 1; n < 1000; n++) {
            send("pass", "default", 4, List.of((long) n));
        }
        long until = System.nanoTime() + 5_000_000_000L;
        int tuples = 0;
        while (tuples < 1000 && System.nanoTime() < until) {
            Thread.sleep(5);
            tuples = -1;
            synchronized (written) {
                for (byte[] frame : written) {
                    tuples += ((frame[9] & 0xff) << 24 | (frame[10] & 0xff) << 16 | (frame[11] & 0xff) << 8 | frame[12] & 0xff) / 2;
                }
            }
        }
        assertEquals(1000, tuples);
        assertTrue(written.size() < 400, written.size() + " frames");
    }

    @Test
    void aTupleThatNobodyCouldTakeIsReportedAndTheRestGoesOn() throws Exception {
        connectBinary(false);
        say("93f800a764656661756c74" + "92009181910102" + "92009101"); // stream 0 is default; {[1]: 2}; 1
        ShellMsg error = serializer.readShellMsg();
        assertEquals("error", error.getCommand());
        assertTrue(error.getMsg().contains("task 5 of component 'count' emitted on stream 'default' was not sent: it has a dict"),
            error.getMsg());
        assertEquals(List.of(1L), serializer.readShellMsg().getTuple());
    }

    @Test
    void oneWhoseTasksTheComponentWaitsForIsAnsweredWithNone() throws Exception {
        connectBinary(false);
        say("93f800a764656661756c74" + "97f7009181910102" + "90c000c3" + "92009101"); // as above, with task ids wanted
        assertEquals("error", serializer.readShellMsg().getCommand());
        byte[] answer = written.get(written.size() - 1);
        assertEquals((byte) 0xfe, answer[answer.length - 2]); // task ids
        assertEquals((byte) 0x90, answer[answer.length - 1]); // none
        assertEquals(List.of(1L), serializer.readShellMsg().getTuple());
    }

    @Test
    void foreignBytesAreShown() throws Exception {
        connectBinary(false);
        component.write("hello world\n".getBytes(StandardCharsets.UTF_8));
        IOException error = assertThrows(IOException.class, serializer::readShellMsg);
        assertTrue(error.getMessage().contains("task 5 of component 'count' sent bytes that are no frame"), error.getMessage());
        assertTrue(error.getMessage().contains("hello wo"), error.getMessage());
    }

    @Test
    void aFrameThatIsCutShortIsTheEndOfTheComponent() throws Exception {
        connectBinary(false);
        component.write(new byte[] {(byte) 0xc1, 'L', 'W', 1, 0, 0, 0, 9, 1, 2});
        component.close();
        NoOutputException error = assertThrows(NoOutputException.class, serializer::readShellMsg);
        assertTrue(error.getMessage().contains("has ended within a frame of 9 bytes"), error.getMessage());
    }

    @Test
    void whatEndsBeforeAFramesHeaderDoesIsShown() throws Exception {
        connectBinary(false);
        component.write("oops".getBytes(StandardCharsets.UTF_8));
        component.close();
        String message = assertThrows(NoOutputException.class, serializer::readShellMsg).getMessage();
        assertTrue(message.contains("task 5 of component 'count' has ended; it ended in: 6f 6f 70 73 (as text: oops)"),
            message);
    }

    @Test
    void aFrameThatEndsWithinAValueIsRefused() throws Exception {
        connectBinary(false);
        say("93f800a764656661756c74" + "920091a5616263");
        String message = assertThrows(IOException.class, serializer::readShellMsg).getMessage();
        assertTrue(message.contains("sent a frame that ends within a value"), message);
    }

    @Test
    void undefinedStreamsAndUnknownKindsAreNamed() throws Exception {
        connectBinary(false);
        say("91f0");
        assertTrue(assertThrows(IOException.class, serializer::readShellMsg).getMessage().contains("kind -16"));
        say("920490");
        assertTrue(assertThrows(IOException.class, serializer::readShellMsg).getMessage().contains("stream number 4"));
    }

    @Test
    void whatHasNoFormInPythonNamesFieldAndSource() throws Exception {
        connectBinary(false);
        IOException error = assertThrows(IOException.class, () -> send("javaspout", "default", 4,
            Arrays.asList("ok", new Object())));
        assertTrue(error.getMessage().contains("field 1 of a tuple from component 'javaspout'"), error.getMessage());
    }

    @Test
    void aStockComponentSpeaksJson() throws Exception {
        connect("{\"pid\": 17}", 0);
        written.clear();
        serializer.writeBoltMsg(tuple("-3", "pass", "default", 4, Arrays.asList("a", 1.5, null, new byte[] {7})));
        assertEquals("{\"id\":\"-3\",\"comp\":\"pass\",\"stream\":\"default\",\"task\":4,\"tuple\":[\"a\",1.5,null,[7]]}\nend\n",
            new String(written.get(0), StandardCharsets.UTF_8));
        serializer.writeTaskIds(List.of(3, 4));
        assertEquals("[3,4]\nend\n", new String(written.get(1), StandardCharsets.UTF_8));
        component.write(("{\"command\": \"emit\", \"tuple\": [1, -73.98771000000001, [2], {\"a\": 3}], \"anchors\": [\"-3\"], "
            + "\"task\": 9, \"need_task_ids\": false}\nend\n").getBytes(StandardCharsets.UTF_8));
        ShellMsg emit = serializer.readShellMsg();
        assertEquals(Arrays.asList(1L, -73.98771000000001, List.of(2L), Map.of("a", 3L)), emit.getTuple());
        assertEquals(9L, emit.getTask()); // Storm's own serializer fails here
        assertEquals("default", emit.getStream());
        assertEquals(List.of("-3"), emit.getAnchors());
        assertFalse(emit.areTaskIdsNeeded());
        component.write("{\"command\": \"log\", \"msg\": \"hi\", \"level\": 4}\nend\n".getBytes(StandardCharsets.UTF_8));
        ShellMsg log = serializer.readShellMsg();
        assertEquals("hi ERROR", log.getMsg() + " " + log.getLogLevel());
        assertNull(log.getTuple());
        component.write("Traceback\nend\n".getBytes(StandardCharsets.UTF_8));
        assertTrue(assertThrows(IOException.class, serializer::readShellMsg).getMessage().contains("Traceback"));
    }
}
