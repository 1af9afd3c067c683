package leeward.multilang;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collection;
import java.util.Map;

/** Writes msgpack values into a growing array. */
final class PackWriter {
    /** Extension type of integers beyond 64 bits: two's complement, highest byte first. */
    static final int BIG_INTEGER = 1;

    private static final int KEPT_BYTES = 1 << 18;

    private byte[] bytes = new byte[1 << 12];
    private int length;

    /** The array itself: valid up to {@link #length}. */
    byte[] bytes() {
        return bytes;
    }

    int length() {
        return length;
    }

    /** Forgets what comes after this position. */
    void cut(int position) {
        length = position;
    }

    /** Starts anew behind so many bytes that will be filled in later. */
    void reset(int from) {
        if (bytes.length > KEPT_BYTES) {
            bytes = new byte[KEPT_BYTES];
        }
        length = from;
    }

    /**
     * Any value that can travel.
     *
     * @throws IllegalArgumentException for any other; says what it is
     */
    void value(Object value) {
        if (value instanceof String) {
            text((String) value);
        } else if (value instanceof Long) {
            integer((Long) value);
        } else if (value instanceof Double) {
            real((Double) value);
        } else if (value == null) {
            octet(0xc0);
        } else if (value instanceof Boolean) {
            octet((Boolean) value ? 0xc3 : 0xc2);
        } else if (value instanceof Integer || value instanceof Short || value instanceof Byte) {
            integer(((Number) value).longValue());
        } else if (value instanceof byte[]) {
            binary((byte[]) value);
        } else if (value instanceof Collection) {
            Collection<?> items = (Collection<?>) value;
            array(items.size());
            for (Object item : items) {
                value(item);
            }
        } else if (value instanceof Map) {
            Map<?, ?> map = (Map<?, ?>) value;
            size(map.size(), 0x80, 16, 0xde);
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                value(entry.getKey());
                value(entry.getValue());
            }
        } else if (value instanceof BigInteger) {
            big((BigInteger) value);
        } else if (value instanceof Float || value instanceof BigDecimal) {
            real(((Number) value).doubleValue());
        } else {
            throw new IllegalArgumentException("a " + value.getClass().getName() + " (" + value + ")");
        }
    }

    void integer(long value) {
        if (value >= -32 && value < 128) {
            octet((int) value);
        } else if (value >= 0) {
            if (value < 1L << 8) {
                tagged(0xcc, value, 1);
            } else if (value < 1L << 16) {
                tagged(0xcd, value, 2);
            } else {
                tagged(value < 1L << 32 ? 0xce : 0xcf, value, value < 1L << 32 ? 4 : 8);
            }
        } else if (value >= Short.MIN_VALUE) {
            tagged(value >= Byte.MIN_VALUE ? 0xd0 : 0xd1, value, value >= Byte.MIN_VALUE ? 1 : 2);
        } else {
            tagged(value >= Integer.MIN_VALUE ? 0xd2 : 0xd3, value, value >= Integer.MIN_VALUE ? 4 : 8);
        }
    }

    void array(int items) {
        size(items, 0x90, 16, 0xdc);
    }

    void text(String text) {
        int chars = text.length();
        if (chars > 80) {
            byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
            textSize(utf8.length);
            raw(utf8);
            return;
        }
        room(5 + 3 * chars);
        int start = length + (chars < 32 ? 1 : 2);
        int at = start;
        for (int i = 0; i < chars; i++) {
            char c = text.charAt(i);
            if (c >= 0x80) {
                byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
                textSize(utf8.length);
                raw(utf8);
                return;
            }
            bytes[at++] = (byte) c;
        }
        if (chars < 32) {
            bytes[length] = (byte) (0xa0 | chars);
        } else {
            bytes[length] = (byte) 0xd9;
            bytes[length + 1] = (byte) chars;
        }
        length = at;
    }

    /** Bytes as they are. */
    void raw(byte[] content) {
        room(content.length);
        System.arraycopy(content, 0, bytes, length, content.length);
        length += content.length;
    }

    private void textSize(int size) {
        if (size >= 32 && size < 256) {
            tagged(0xd9, size, 1);
        } else {
            size(size, 0xa0, 32, 0xda);
        }
    }

    private void binary(byte[] content) {
        if (content.length < 256) {
            tagged(0xc4, content.length, 1);
        } else {
            tagged(content.length < 1 << 16 ? 0xc5 : 0xc6, content.length, content.length < 1 << 16 ? 2 : 4);
        }
        raw(content);
    }

    private void big(BigInteger value) {
        if (value.bitLength() < 64) {
            integer(value.longValue());
            return;
        }
        if (value.bitLength() == 64 && value.signum() > 0) {
            tagged(0xcf, value.longValue(), 8);
            return;
        }
        byte[] content = value.toByteArray();
        if (content.length < 256) {
            tagged(0xc7, content.length, 1);
        } else {
            tagged(content.length < 1 << 16 ? 0xc8 : 0xc9, content.length, content.length < 1 << 16 ? 2 : 4);
        }
        octet(BIG_INTEGER);
        raw(content);
    }

    private void real(double value) {
        tagged(0xcb, Double.doubleToRawLongBits(value), 8);
    }

    /** In one byte below {@code limit}; else behind {@code tag} in two, or behind {@code tag + 1} in four. */
    private void size(int size, int small, int limit, int tag) {
        if (size < limit) {
            octet(small | size);
        } else {
            tagged(size < 1 << 16 ? tag : tag + 1, size, size < 1 << 16 ? 2 : 4);
        }
    }

    private void octet(int value) {
        room(1);
        bytes[length++] = (byte) value;
    }

    private void tagged(int tag, long value, int width) {
        room(1 + width);
        bytes[length++] = (byte) tag;
        for (int shift = 8 * (width - 1); shift >= 0; shift -= 8) {
            bytes[length++] = (byte) (value >>> shift);
        }
    }

    private void room(int more) {
        if (bytes.length - length < more) {
            bytes = Arrays.copyOf(bytes, Math.max(length + more, 2 * bytes.length));
        }
    }
}
