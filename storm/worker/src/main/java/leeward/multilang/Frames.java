package leeward.multilang;

/**
 * A frame: {@code c1 4c 57 01} (a byte that no msgpack value begins with, "LW", the version), the length of what follows
 * as four bytes, then that many bytes. To the component this is one msgpack array; from the component it is a sequence
 * of msgpack values.
 */
final class Frames {
    static final int HEADER = 8;
    /** Header, and the array's own five bytes. */
    static final int PREFIX = HEADER + 5;
    /** Longer ones are not believed. */
    static final int LONGEST = 1 << 30;

    private static final int MAGIC = 0xc14c5701;

    private Frames() {
    }

    /** Fills in the prefix of a batch of so many items. */
    static void seal(PackWriter data, int items) {
        byte[] bytes = data.bytes();
        putInt(bytes, 0, MAGIC);
        putInt(bytes, 4, data.length() - HEADER);
        bytes[HEADER] = (byte) 0xdd;
        putInt(bytes, HEADER + 1, items);
    }

    /** The length that a header tells, or -1 if it is no header. */
    static int length(byte[] header) {
        int length = getInt(header, 4);
        return getInt(header, 0) == MAGIC && length >= 0 && length <= LONGEST ? length : -1;
    }

    private static void putInt(byte[] bytes, int at, int value) {
        bytes[at] = (byte) (value >>> 24);
        bytes[at + 1] = (byte) (value >>> 16);
        bytes[at + 2] = (byte) (value >>> 8);
        bytes[at + 3] = (byte) value;
    }

    private static int getInt(byte[] bytes, int at) {
        return bytes[at] << 24 | (bytes[at + 1] & 0xff) << 16 | (bytes[at + 2] & 0xff) << 8 | bytes[at + 3] & 0xff;
    }
}
