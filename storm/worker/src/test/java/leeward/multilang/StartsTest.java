package leeward.multilang;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** How often a process may be started again. */
class StartsTest {
    private final Starts starts = new Starts(3, 60);

    @Test
    void soManyWithinTheTimeAndNoMore() {
        assertTrue(starts.another(0));
        assertTrue(starts.another(10));
        assertTrue(starts.another(20));
        assertFalse(starts.another(59));
    }

    @Test
    void whatIsLongAgoDoesNotCount() {
        soManyWithinTheTimeAndNoMore();
        assertTrue(starts.another(60));
        assertFalse(starts.another(69));
        assertTrue(starts.another(70));
    }

    @Test
    void theClockMayHaveAnyOrigin() {
        long late = Long.MAX_VALUE - 5;
        assertTrue(starts.another(late));
        assertTrue(starts.another(late + 10)); // has become negative
        assertTrue(starts.another(late + 20));
        assertFalse(starts.another(late + 50));
        assertTrue(starts.another(late + 60));
    }
}
