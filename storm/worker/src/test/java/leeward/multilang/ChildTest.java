package leeward.multilang;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Real processes, shell scripts that speak Storm's JSON, are lost in all ways and replaced. */
@Timeout(60)
class ChildTest {
    private static final String GREETING = "message() { while IFS= read -r line; do [ \"$line\" = end ] && return; done; "
        + "exit 3; }; message; printf '{\"pid\": %d%s}\\nend\\n' $$ \"$pipe\"; ";

    @TempDir
    Path folder;
    private final Map<String, Object> conf = new HashMap<>();
    private final List<String> seen = Collections.synchronizedList(new ArrayList<>());
    private final CountDownLatch reported = new CountDownLatch(1);
    private final CountDownLatch given = new CountDownLatch(1);
    private Runnable reporting = () -> { };
    private Child child;

    /** A child that does this after the handshake. */
    private Child child(String body) {
        return child(body, "");
    }

    /** Something before the handshake, too. */
    private Child child(String body, String before) {
        conf.putIfAbsent("topology.subprocess.timeout.secs", 30);
        String script = "echo >>" + folder.resolve("starts") + "; " + before + GREETING + body;
        Child.Settings settings = new Child.Settings("count-5", "count", new String[] {"/bin/sh", "-c", script},
            folder.toFile(), folder.toString(), conf);
        child = new Child(settings, pipe -> pipe.connect(conf, "{}", folder.toString(), "task 5 of component 'count'"),
            new Child.Owner() {
                @Override
                public void ended() {
                    seen.add("ended");
                }

                @Override
                public void report(Throwable error) {
                    seen.add("report: " + error.getMessage());
                    reported.countDown();
                    reporting.run();
                }

                @Override
                public void giveUp() {
                    seen.add("given up");
                    given.countDown();
                }
            });
        return child;
    }

    @AfterEach
    void close() {
        if (child != null) {
            child.close();
        }
    }

    private long starts() throws IOException {
        return Files.readAllLines(folder.resolve("starts")).size();
    }

    static Throwable lastWords(ComponentProcess process) {
        return assertThrows(Exception.class, () -> {
            while (true) {
                process.read();
            }
        });
    }

    @Test
    void aProcessThatEndsIsReplaced() throws Exception {
        ComponentProcess first = child("echo broken >&2; exit 7").start();
        Path pidFile = Files.createFile(folder.resolve(Long.toString(first.pid())));
        ComponentProcess next = child.replace(first, lastWords(first));
        assertEquals(2, next.number);
        assertNotEquals(first.pid(), next.pid());
        assertSame(next, child.current());
        assertEquals("ended", seen.get(0));
        assertEquals("\nbroken", first.lastPrinted());
        assertFalse(Files.exists(pidFile), "the supervisor would signal whoever has this id later");
    }

    @Test
    void aLossThatIsFoundTwiceIsMadeGoodOnce() throws Exception {
        ComponentProcess first = child("exec sleep 100").start();
        child.replaceSoon(first, new IOException("gone"));
        child.replaceSoon(first, new IOException("gone"));
        ComponentProcess next = child.await();
        Thread.sleep(1000);
        assertSame(next, child.current());
        assertEquals(2, starts());
        child.replaceSoon(next, new IOException("gone, too"));
        assertEquals(3, child.await().number);
    }

    /** Calls itself until the stack is full; what does not fit is tried again one frame further out. */
    private void replaceDeepDown(ComponentProcess process) {
        try {
            replaceDeepDown(process);
        } catch (StackOverflowError full) {
            child.replaceSoon(process, new IOException("gone"));
        }
    }

    @Test
    void aLossThatIsFoundOnAFullStackIsMadeGood() throws Exception {
        ComponentProcess first = child("exec sleep 100").start();
        child.replaceSoon(first, new IOException("gone")); // what it needs is loaded from here on
        ComponentProcess next = child.await();
        Thread deep = new Thread(null, () -> replaceDeepDown(next), "deep", 512 << 10);
        deep.start();
        deep.join();
        assertEquals(3, child.await().number);
    }

    @Test
    void whatItSaidBeforeItEndedIsHeardThoughWritingFailed() throws Exception {
        ComponentProcess first = child("printf '{\"command\": \"error\", \"msg\": \"why\"}\\nend\\n'; exit 1").start();
        assertThrows(IOException.class, () -> {
            while (true) {
                first.dialect().tuple("1", "source", "default", 1, -1, List.of("x".repeat(1000)));
            }
        });
        child.broken(first, new IOException("Broken pipe"));
        assertNull(child.current());
        assertEquals("why", first.read().getMsg());
        assertNotNull(child.replace(first, lastWords(first)));
    }

    @Test
    void afterFiveStartsInAMinuteItIsGivenUp() throws Exception {
        ComponentProcess process = child("exit 1").start();
        for (int number = 2; number <= 6; number++) {
            process = child.replace(process, lastWords(process));
            assertEquals(number, process.number);
        }
        assertNull(child.replace(process, lastWords(process)));
        assertTrue(seen.contains("given up"));
        RuntimeException failure = assertThrows(RuntimeException.class, child::current);
        assertTrue(failure.getMessage().contains("count-5"), failure.getMessage());
        assertThrows(RuntimeException.class, child::await);
    }

    @Test
    void aProcessThatEndsBeforeTheHandshakeIsStartedFiveTimesToo() throws Exception {
        Path broken = folder.resolve("broken");
        ComponentProcess first = child("exit 1", "[ -e " + broken + " ] && { echo no >&2; exit 9; }; ").start();
        Throwable end = lastWords(first);
        Files.createFile(broken);
        assertNull(child.replace(first, end));
        assertEquals(6, starts());
        assertTrue(seen.contains("given up"));
    }

    @Test
    void aFirstStartThatFailsIsAnErrorOfTheTask() {
        conf.put("topology.subprocess.timeout.secs", 30);
        Child.Settings settings = new Child.Settings("count-5", "count",
            new String[] {"/bin/sh", "-c", "echo no such module >&2; exit 1"}, folder.toFile(), null, conf);
        child = new Child(settings, pipe -> pipe.connect(conf, "{}", "", "task 5"), null);
        RuntimeException failure = assertThrows(RuntimeException.class, child::start);
        assertTrue(failure.getMessage().contains("no such module"), failure.getMessage());
    }

    @Test
    void aStoppedProcessIsKilledAndReplaced() throws Exception {
        assumeTrue(Files.exists(Path.of("/proc/self/stat")));
        conf.put(Child.AWAY, 0.5);
        ComponentProcess first = child("kill -STOP $$").start();
        CompletableFuture<Throwable> writer = CompletableFuture.supplyAsync(() -> assertThrows(IOException.class, () -> {
            while (true) {
                first.dialect().tuple("1", "source", "default", 1, -1, List.of("x".repeat(1000)));
            }
        }));
        Throwable end = lastWords(first);
        assertNotNull(writer.get(10, TimeUnit.SECONDS), "a thread that was writing to it goes on");
        ComponentProcess next = child.replace(first, end);
        assertEquals(2, next.number);
        assertTrue(first.cause().getMessage().contains("was stopped for longer than leeward.away.secs"),
            first.cause().getMessage());
    }

    @Test
    void aStoppedProcessIsWaitedForIfThatIsWanted() throws Exception {
        conf.put(Child.AWAY, 0);
        ComponentProcess first = child("kill -STOP $$; printf '{\"command\": \"sync\"}\\nend\\n'; exec sleep 60").start();
        CompletableFuture<String> message = CompletableFuture.supplyAsync(() -> {
            try {
                return first.read().getCommand();
            } catch (Exception e) {
                return e.toString();
            }
        });
        Thread.sleep(1500);
        assertFalse(message.isDone());
        new ProcessBuilder("kill", "-CONT", Long.toString(first.pid())).start().waitFor();
        assertEquals("sync", message.get(10, TimeUnit.SECONDS));
    }

    @Test
    void aSilentProcessIsReplacedOnlyIfAMessageIsExpected() throws Exception {
        conf.put("topology.subprocess.timeout.secs", 1);
        ComponentProcess first = child("exec sleep 60").start();
        CompletableFuture<Throwable> end = CompletableFuture.supplyAsync(() -> lastWords(first));
        Thread.sleep(1800);
        assertFalse(end.isDone());
        first.expect(true);
        assertEquals(2, child.replace(first, end.get(10, TimeUnit.SECONDS)).number);
        assertTrue(first.cause().getMessage().contains("topology.subprocess.timeout.secs"), first.cause().getMessage());
    }

    @Test
    void aNewProcessThatDoesNotAnswerIsReplacedToo() throws Exception {
        conf.put("topology.subprocess.timeout.secs", 1);
        Path hangs = folder.resolve("hangs");
        ComponentProcess first = child("exit 1", "[ -e " + hangs + " ] && rm " + hangs + " && exec sleep 60; ").start();
        Throwable end = lastWords(first);
        Files.createFile(hangs);
        assertEquals(3, child.replace(first, end).number);
    }

    @Test
    void writersWaitForTheNextProcess() throws Exception {
        ComponentProcess first = child("message; exit 1").start();
        first.dialect().tuple("1", "source", "default", 1, -1, List.of());
        Throwable end = lastWords(first);
        child.broken(first, end);
        CompletableFuture<ComponentProcess> writer = CompletableFuture.supplyAsync(() -> {
            try {
                return child.await();
            } catch (InterruptedException e) {
                return null;
            }
        });
        Thread.sleep(100);
        assertFalse(writer.isDone());
        assertSame(child.replace(first, end), writer.get(10, TimeUnit.SECONDS));
        assertThrows(IOException.class, () -> first.dialect().tuple("2", "source", "default", 1, -1, List.of()));
    }

    @Test
    void whoWaitsForRoomIsReleasedWhenNobodyReadsAnyMore() throws Exception {
        conf.put("topology.acker.executors", 0);
        ComponentProcess first = child("exec cat >/dev/null", "pipe=', \"leeward.pipe\": 2';").start();
        CompletableFuture<Throwable> writer = CompletableFuture.supplyAsync(() -> assertThrows(IOException.class, () -> {
            while (true) {
                first.dialect().tuple(null, "source", "default", 1, -1, List.of("x"));
            }
        }));
        Thread.sleep(200);
        assertFalse(writer.isDone(), "the process takes nothing");
        assertNotNull(child.replace(first, new IllegalArgumentException("a message that cannot be handled")));
        assertNotNull(writer.get(10, TimeUnit.SECONDS));
    }

    @Test
    void nobodyIsStartedWhileTheWorkerIsBeingEnded() throws Exception {
        ComponentProcess first = child("kill -TERM $$").start();
        Throwable end = lastWords(first);
        CompletableFuture<ComponentProcess> next = CompletableFuture.supplyAsync(() -> child.replace(first, end));
        Thread.sleep(200);
        child.close();
        assertNull(next.get(10, TimeUnit.SECONDS));
        assertEquals(List.of(), seen);
        assertEquals(1, starts());
        assertNull(child.await());
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aReportThatWaitsOrFailsDoesNotKeepTheWorker(boolean waits) throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        reporting = () -> {
            if (!waits) {
                throw new IllegalStateException("ZooKeeper is away");
            }
            try {
                gate.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        };
        ComponentProcess first = child("exec sleep 100").start();
        assertNull(child.replace(first, new OutOfMemoryError("of the worker")));
        assertTrue(seen.contains("given up"));
        reported.await();
        assertTrue(seen.stream().anyMatch(what -> what.contains("is lost and is not replaced")), seen.toString());
        gate.countDown();
    }

    @Test
    void aPipeThatAnotherProcessHoldsOpenIsTheEndOfTheWorker() throws Exception {
        ComponentProcess first = child("sleep 15 & sleep 0.5; exit 1").start();
        Child.daemon(() -> lastWords(first), "reader").start();
        assertTrue(given.await(12, TimeUnit.SECONDS));
    }

    @Test
    void aSettingThatIsNoNumberIsRefused() {
        conf.put(Child.AWAY, "two");
        Exception refused = assertThrows(IllegalArgumentException.class, () -> child("exit 1"));
        assertTrue(refused.getMessage().contains("leeward.away.secs is 'two'"), refused.getMessage());
    }
}
