package leeward.multilang;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.slf4j.LoggerFactory;

/** Looks at a process at times that the test makes up; nobody else looks at it. */
@Timeout(60)
class ComponentProcessTest {
    private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(30);
    /** Says one thing, and reads and says nothing more. */
    private static final String SCRIPT = """
        while read -r line; do [ "$line" = end ] && break; done
        printf '{"pid": %d}\\nend\\n{"command": "sync"}\\nend\\n' $$
        exec sleep 100
        """;

    private ComponentProcess process;
    private long now = System.nanoTime();

    @BeforeEach
    void start() throws Exception {
        process = new ComponentProcess(1, new ProcessBuilder("/bin/sh", "-c", SCRIPT).start(), new Absence(0, 1),
            PATIENCE_NS, LoggerFactory.getLogger("count"));
        Map<String, Object> conf = new HashMap<>();
        process.connect(pipe -> pipe.connect(conf, "{}", "", "task 5"));
        process.expect(true);
    }

    @AfterEach
    void end() {
        process.kill();
    }

    /** Somebody looks at it four times a second, until this time has passed. */
    private void look(long forNs) {
        for (long end = now + forNs; now - end < 0; now += Watch.PERIOD_NS) {
            assertNull(process.look(now));
        }
    }

    /** Somebody looks at it until it is killed. */
    private void lookUntilItIsKilled() {
        while (process.cause() == null) {
            look(PATIENCE_NS / 3);
        }
        assertTrue(process.cause().getMessage().contains("has sent nothing for"), process.cause().getMessage());
    }

    @Test
    void theTimeForWhichTheWorkerHandlesAMessageIsNoSilenceOfTheProcess() throws Exception {
        assertEquals("sync", process.read().getCommand());
        look(10 * PATIENCE_NS);
        assertNull(process.cause());
        Thread reader = Child.daemon(() -> ChildTest.lastWords(process), "reader");
        reader.start();
        lookUntilItIsKilled();
    }

    @Test
    void aProcessThatTakesNoTaskIdsIsSilent() throws Exception {
        assertEquals("sync", process.read().getCommand());
        Thread reader = Child.daemon(() -> {
            try {
                while (true) {
                    process.taskIds(List.of(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
                }
            } catch (Exception e) {
                assertNotNull(e);
            }
        }, "reader");
        reader.start();
        lookUntilItIsKilled();
    }
}
