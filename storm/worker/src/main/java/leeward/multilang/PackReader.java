package leeward.multilang;

import java.io.IOException;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import leeward.grouping.KeyGroups;

/**
 * Reads msgpack values from an array into classes that Storm's Kryo knows in every worker: Long, Double, String,
 * Boolean, byte[], BigInteger, ArrayList, HashMap.
 */
final class PackReader {
    /** Kryo recurses for each level, on stacks of half a megabyte. */
    static final int DEEPEST = 100;

    private static final byte[] NONE = new byte[0];

    private byte[] bytes = NONE;
    private int position;
    private int end;

    /** A value is well formed, but no other worker or component could take it. */
    static final class UnfitException extends Exception {
        private static final long serialVersionUID = 1L;

        UnfitException(String what) {
            super(what);
        }
    }

    void on(byte[] content, int length) {
        bytes = content;
        position = 0;
        end = length;
    }

    boolean hasMore() {
        return position < end;
    }

    int position() {
        return position;
    }

    void back(int earlier) {
        position = earlier;
    }

    /** The items of an array that must come next. */
    int array() throws IOException {
        int tag = octet();
        if ((tag & 0xf0) == 0x90) {
            return tag & 0x0f;
        }
        if (tag == 0xdc || tag == 0xdd) {
            return size(tag == 0xdc ? 2 : 4);
        }
        throw malformed(tag);
    }

    /** An array that must come next. */
    List<Object> list() throws IOException, UnfitException {
        return items(array(), 1);
    }

    /** An array that must come next, left as it is once it is known that all of it can travel. */
    PackedValues packed() throws IOException, UnfitException {
        int size = array();
        if (size > end - position) {
            throw new IOException("the component sent a tuple of " + size + " values in " + (end - position) + " bytes");
        }
        int start = position;
        for (int i = 0; i < size; i++) {
            int tag = position < end ? bytes[position] & 0xff : 0;
            boolean container = tag >= 0x80 && tag < 0xa0 || tag >= 0xdc && tag <= 0xdf;
            if (container || tag >= 0xc7 && tag <= 0xc9 || tag >= 0xd4 && tag <= 0xd8) {
                value(1); // only these may be unfit
            } else {
                skip();
            }
        }
        return new PackedValues(size, Arrays.copyOfRange(bytes, start, position));
    }

    /** An integer that must come next. */
    long integer() throws IOException, UnfitException {
        Object value = value(0);
        if (value instanceof Long) {
            return (Long) value;
        }
        throw new IOException("the component sent " + value + " where an integer must be");
    }

    /** A text that must come next. */
    String text() throws IOException, UnfitException {
        Object value = value(0);
        if (value instanceof String) {
            return (String) value;
        }
        throw new IOException("the component sent " + value + " where a text must be");
    }

    Object value() throws IOException, UnfitException {
        return value(0);
    }

    private Object value(int depth) throws IOException, UnfitException {
        int tag = octet();
        if (tag < 0x80) {
            return (long) tag;
        }
        if (tag >= 0xe0) {
            return (long) (byte) tag;
        }
        if (tag >= 0xa0 && tag < 0xc0) {
            return string(tag & 0x1f);
        }
        if (tag < 0x90) {
            return map(tag & 0x0f, depth + 1);
        }
        if (tag < 0xa0) {
            return items(tag & 0x0f, depth + 1);
        }
        switch (tag) {
            case 0xc0: return null;
            case 0xc2: return Boolean.FALSE;
            case 0xc3: return Boolean.TRUE;
            case 0xc4: return binary(size(1));
            case 0xc5: return binary(size(2));
            case 0xc6: return binary(size(4));
            case 0xc7: return big(size(1));
            case 0xc8: return big(size(2));
            case 0xc9: return big(size(4));
            case 0xca: return (double) Float.intBitsToFloat((int) unsigned(4));
            case 0xcb: return Double.longBitsToDouble(unsigned(8));
            case 0xcc: return unsigned(1);
            case 0xcd: return unsigned(2);
            case 0xce: return unsigned(4);
            case 0xcf: return unsignedLong();
            case 0xd0: return (long) (byte) unsigned(1);
            case 0xd1: return (long) (short) unsigned(2);
            case 0xd2: return (long) (int) unsigned(4);
            case 0xd3: return unsigned(8);
            case 0xd4: return big(1);
            case 0xd5: return big(2);
            case 0xd6: return big(4);
            case 0xd7: return big(8);
            case 0xd8: return big(16);
            case 0xd9: return string(size(1));
            case 0xda: return string(size(2));
            case 0xdb: return string(size(4));
            case 0xdc: return items(size(2), depth + 1);
            case 0xdd: return items(size(4), depth + 1);
            case 0xde: return map(size(2), depth + 1);
            case 0xdf: return map(size(4), depth + 1);
            default: throw malformed(tag);
        }
    }

    /** Passes over one value, however deep. */
    void skip() throws IOException {
        for (long left = 1; left > 0; left--) {
            int tag = octet();
            if (tag < 0x80 || tag >= 0xe0 || tag == 0xc0 || tag == 0xc2 || tag == 0xc3) {
                continue;
            }
            if (tag >= 0xa0 && tag < 0xc0) {
                pass(tag & 0x1f);
            } else if (tag < 0x90) {
                left += 2 * (tag & 0x0f);
            } else if (tag < 0xa0) {
                left += tag & 0x0f;
            } else if (tag >= 0xc4 && tag <= 0xc9) {
                pass(size(1 << (tag - 0xc4) % 3) + (tag >= 0xc7 ? 1 : 0));
            } else if (tag == 0xca) {
                pass(4);
            } else if (tag == 0xcb) {
                pass(8);
            } else if (tag >= 0xcc && tag <= 0xd3) {
                pass(1 << (tag & 3));
            } else if (tag >= 0xd4 && tag <= 0xd8) {
                pass(1 + (1 << tag - 0xd4));
            } else if (tag >= 0xd9 && tag <= 0xdb) {
                pass(size(1 << tag - 0xd9));
            } else if (tag >= 0xdc) {
                left += (tag < 0xde ? 1L : 2L) * size((tag & 1) == 0 ? 2 : 4);
            } else {
                throw malformed(tag);
            }
        }
    }

    /** Feeds a text that may come next to the CRC of a key; -1 if something else comes. */
    long feed(int crc) throws IOException {
        int tag = octet();
        boolean isShort = tag >= 0xa0 && tag < 0xc0;
        if (!isShort && (tag < 0xd9 || tag > 0xdb)) {
            return -1;
        }
        int start = pass(isShort ? tag & 0x1f : size(1 << tag - 0xd9));
        int fed = crc;
        for (int i = start; i < position; i++) {
            fed = KeyGroups.step(fed, bytes[i]);
        }
        return fed & 0xffffffffL;
    }

    private List<Object> items(int count, int depth) throws IOException, UnfitException {
        enter(count, depth);
        List<Object> items = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            items.add(value(depth));
        }
        return items;
    }

    private Map<Object, Object> map(int count, int depth) throws IOException, UnfitException {
        enter(count, depth);
        Map<Object, Object> map = new HashMap<>(2 * count);
        for (int i = 0; i < count; i++) {
            Object key = value(depth);
            if (key instanceof List || key instanceof Map || key instanceof byte[]) {
                throw new UnfitException("a dict whose key is a sequence or a mapping; a key is a str, int, float, bool "
                    + "or None");
            }
            map.put(key, value(depth));
        }
        return map;
    }

    private void enter(int count, int depth) throws IOException, UnfitException {
        if (count > end - position) {
            throw new IOException("the component sent a value of " + count + " parts in " + (end - position) + " bytes");
        }
        if (depth > DEEPEST) {
            throw new UnfitException("a value nested deeper than " + DEEPEST + " levels");
        }
    }

    private String string(int size) throws IOException {
        int start = pass(size);
        return new String(bytes, start, size, StandardCharsets.UTF_8);
    }

    private byte[] binary(int size) throws IOException {
        int start = pass(size);
        return Arrays.copyOfRange(bytes, start, start + size);
    }

    private Object big(int size) throws IOException {
        int type = octet();
        if (type != PackWriter.BIG_INTEGER || size == 0) {
            throw new IOException("the component sent a value of the unknown extension type " + type);
        }
        BigInteger value = new BigInteger(binary(size));
        return value.bitLength() < 64 ? (Object) value.longValue() : value;
    }

    private Object unsignedLong() throws IOException {
        long value = unsigned(8);
        return value >= 0 ? (Object) value : new BigInteger(Long.toUnsignedString(value));
    }

    private int size(int width) throws IOException {
        long size = unsigned(width);
        if (size > end - position && width == 4 && size > Frames.LONGEST) {
            throw new IOException("the component sent a value of " + size + " bytes or parts");
        }
        return (int) size;
    }

    private long unsigned(int width) throws IOException {
        int at = pass(width);
        long value = 0;
        for (int i = 0; i < width; i++) {
            value = value << 8 | bytes[at + i] & 0xff;
        }
        return value;
    }

    private int octet() throws IOException {
        return bytes[pass(1)] & 0xff;
    }

    private int pass(int count) throws IOException {
        int start = position;
        if (count < 0 || count > end - start) {
            throw new IOException("the component sent a frame that ends within a value");
        }
        position = start + count;
        return start;
    }

    private IOException malformed(int tag) {
        return new IOException(String.format("the component sent 0x%02x at byte %d of a frame, where a value must be",
            tag, position - 1));
    }
}
