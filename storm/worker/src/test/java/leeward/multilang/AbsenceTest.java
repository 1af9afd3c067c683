package leeward.multilang;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** When a process counts as absent for too long. */
class AbsenceTest {
    private final Absence absence = new Absence(2000, 500);

    @Test
    void stoppedForLongIsTooLong() {
        for (int at = 0; at < 2000; at += 250) {
            assertFalse(absence.tooLong('T', at), "at " + at);
        }
        assertTrue(absence.tooLong('T', 2000));
    }

    @Test
    void aLookThatFindsItRunningBeginsAnew() {
        absence.tooLong('T', 0);
        absence.tooLong('T', 1000);
        assertFalse(absence.tooLong('S', 1250));
        for (int at = 1500; at < 3500; at += 250) {
            assertFalse(absence.tooLong(at % 500 == 0 ? 't' : 'Z', at), "at " + at);
        }
        assertTrue(absence.tooLong('Z', 3500));
    }

    @Test
    void itIsNotBlamedForTheTimeInWhichTheWorkerWasStoppedToo() {
        absence.tooLong('T', 0);
        assertFalse(absence.tooLong('T', 60_000));
        assertFalse(absence.tooLong('T', 60_250));
    }

    @Test
    void runningSleepingAndUnknownAreNotAbsent() {
        for (char state : new char[] {'R', 'S', 'D', Absence.UNKNOWN}) {
            assertFalse(absence.tooLong(state, 0));
            assertFalse(absence.tooLong(state, 100_000));
        }
    }

    @Test
    void withoutALimitItMayBeStoppedForEver() {
        Absence patient = new Absence(0, 500);
        for (int at = 0; at < 100_000; at += 250) {
            assertFalse(patient.tooLong('T', at));
        }
    }

    @Test
    void theStateFollowsTheNameWhateverThatIs() {
        assertEquals('T', Absence.stateIn("123 (python3) T 1 123"));
        assertEquals('S', Absence.stateIn("123 (a (b) R c) S 1 123"));
        assertEquals(Absence.UNKNOWN, Absence.stateIn(""));
        assertEquals(Absence.UNKNOWN, Absence.state(Long.MAX_VALUE));
    }
}
