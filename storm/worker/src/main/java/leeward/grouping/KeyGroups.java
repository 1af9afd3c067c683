package leeward.grouping;

import java.math.BigInteger;
import java.util.List;

/**
 * From a key to its group: {@code crc32(utf8(text(key))) mod 128}.
 *
 * <p>The Python side computes the same number for the same key (its state is kept per group), so the rule must never
 * change: a string is its own text, an integer is its decimal digits, several fields are joined with U+001F. Nothing is
 * allocated per call: this runs twice for every tuple.
 */
public final class KeyGroups {
    public static final int GROUPS = 128;

    /** Values of a tuple, the texts among which are UTF-8 already. */
    public interface Texts {
        /** Feeds this value to a CRC by {@link #step}; -1 if it is no text, else the CRC, which is never negative. */
        long feed(int crc, int index);
    }

    private static final int SEPARATOR = 0x1f;
    private static final int[] CRC = crcTable();

    private KeyGroups() {
    }

    /**
     * The key group of a tuple, 0 to 127.
     *
     * @throws IllegalArgumentException if a key is neither a string nor an integer; names field, type and component
     */
    public static int group(List<Object> values, int[] positions, String[] fields, String component) {
        int crc = -1;
        for (int i = 0; i < positions.length; i++) {
            if (i > 0) {
                crc = step(crc, SEPARATOR);
            }
            long fed = values instanceof Texts ? ((Texts) values).feed(crc, positions[i]) : -1;
            if (fed >= 0) {
                crc = (int) fed;
                continue;
            }
            Object key = values.get(positions[i]);
            if (key instanceof String) {
                crc = text(crc, (String) key, fields[i], component);
            } else if (key instanceof Integer || key instanceof Long || key instanceof Short || key instanceof Byte) {
                crc = decimal(crc, ((Number) key).longValue());
            } else if (key instanceof BigInteger) {
                crc = text(crc, key.toString(), fields[i], component);
            } else {
                throw illegal(key, fields[i], component);
            }
        }
        return ~crc & (GROUPS - 1);
    }

    /** Feeds a text as UTF-8. A lone surrogate has no UTF-8 form (Python refuses it as well). */
    private static int text(int crc, String text, String field, String component) {
        int length = text.length();
        for (int i = 0; i < length; i++) {
            char c = text.charAt(i);
            if (c < 0x80) {
                crc = step(crc, c);
            } else if (c < 0x800) {
                crc = step(step(crc, 0xc0 | c >> 6), 0x80 | c & 0x3f);
            } else if (!Character.isSurrogate(c)) {
                crc = step(step(step(crc, 0xe0 | c >> 12), 0x80 | c >> 6 & 0x3f), 0x80 | c & 0x3f);
            } else if (Character.isHighSurrogate(c) && i + 1 < length && Character.isLowSurrogate(text.charAt(i + 1))) {
                int point = Character.toCodePoint(c, text.charAt(++i));
                crc = step(step(crc, 0xf0 | point >> 18), 0x80 | point >> 12 & 0x3f);
                crc = step(step(crc, 0x80 | point >> 6 & 0x3f), 0x80 | point & 0x3f);
            } else {
                throw new IllegalArgumentException("key field '" + field + "' of component '" + component
                    + "' has a lone surrogate at character " + i + ": send text that UTF-8 can express");
            }
        }
        return crc;
    }

    /** Feeds the decimal digits of a number; works on its negative, as Long.MIN_VALUE has no positive. */
    private static int decimal(int crc, long number) {
        if (number < 0) {
            return digits(step(crc, '-'), number);
        }
        return digits(crc, -number);
    }

    private static int digits(int crc, long negative) {
        int before = negative <= -10 ? digits(crc, negative / 10) : crc;
        return step(before, (int) ('0' - negative % 10));
    }

    /** Feeds one byte. */
    public static int step(int crc, int octet) {
        return crc >>> 8 ^ CRC[(crc ^ octet) & 0xff];
    }

    /** The reflected polynomial of zlib and of java.util.zip.CRC32. */
    private static int[] crcTable() {
        int[] table = new int[256];
        for (int i = 0; i < 256; i++) {
            int c = i;
            for (int bit = 0; bit < 8; bit++) {
                c = (c & 1) == 0 ? c >>> 1 : c >>> 1 ^ 0xedb88320;
            }
            table[i] = c;
        }
        return table;
    }

    private static IllegalArgumentException illegal(Object key, String field, String component) {
        String type = key == null ? "null" : "a " + key.getClass().getSimpleName() + " (" + key + ")";
        return new IllegalArgumentException("key field '" + field + "' of component '" + component + "' is " + type
            + ": a key is a string or an integer, convert it before emitting");
    }
}
