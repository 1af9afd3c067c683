package leeward.multilang;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;

/**
 * For how long a process has been stopped (by a signal or a debugger) or a zombie, counted from look to look. Linux
 * only: elsewhere no process counts as absent.
 */
final class Absence {
    /** Of one process in {@code /proc}, where that exists. */
    static final char UNKNOWN = '?';

    private final long limitNs;
    private final long longestGapNs;
    private boolean absent;
    private long absentNs;
    private long lookedAt;

    /**
     * Nothing is known yet.
     *
     * @param limitNs      absent for so long is too long; 0: never
     * @param longestGapNs more time than this between two looks is not counted: the worker was stopped, too
     */
    Absence(long limitNs, long longestGapNs) {
        this.limitNs = limitNs;
        this.longestGapNs = longestGapNs;
    }

    /** Takes a look's result in; whether the process has been absent for too long. */
    boolean tooLong(char state, long now) {
        boolean before = absent;
        absent = state == 'T' || state == 't' || state == 'Z';
        absentNs = before && absent ? absentNs + Math.min(now - lookedAt, longestGapNs) : 0;
        lookedAt = now;
        return limitNs > 0 && absent && absentNs >= limitNs;
    }

    /** The state's letter, as in {@code man 5 proc}. */
    static char state(long pid) {
        try {
            return stateIn(new String(Files.readAllBytes(Paths.get("/proc/" + pid + "/stat")),
                StandardCharsets.ISO_8859_1));
        } catch (IOException e) {
            return UNKNOWN;
        }
    }

    /** The state follows the program's name, which is in parentheses and may itself contain some. */
    static char stateIn(String stat) {
        int at = stat.lastIndexOf(')') + 2;
        return at >= 2 && at < stat.length() ? stat.charAt(at) : UNKNOWN;
    }
}
