package leeward.multilang;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class StartingTest {
    @Test
    void garbageIsCollectedWhenTheLastOneHasStarted() {
        AtomicInteger collections = new AtomicInteger();
        Starting starting = new Starting(collections::incrementAndGet);
        starting.begin();
        starting.begin();
        starting.end();
        assertEquals(0, collections.get());
        starting.end();
        assertEquals(1, collections.get());
        starting.begin();
        starting.end();
        assertEquals(2, collections.get(), "a component that came later");
    }
}
