package leeward.multilang;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The file that the Python side is held to as well: tests/vectors/pipe.json. */
final class Vectors {
    private Vectors() {
    }

    static Map<?, ?> read() throws Exception {
        Path file = Path.of(System.getProperty("vectors.dir"), "pipe.json");
        return (Map<?, ?>) Json.parse(Files.readString(file));
    }

    /** A value as the file tells it. */
    static Object value(Object told) {
        if (!(told instanceof Map)) {
            return told;
        }
        Map.Entry<?, ?> only = ((Map<?, ?>) told).entrySet().iterator().next();
        Object what = only.getValue();
        switch ((String) only.getKey()) {
            case "int": return integer(new BigInteger((String) what));
            case "float": return real((String) what);
            case "str": return what;
            case "bytes": return bytes((String) what);
            case "list": return list((List<?>) what);
            case "dict": return dict((List<?>) what);
            case "repeat": return repeat(value(((List<?>) what).get(0)), ((Long) ((List<?>) what).get(1)).intValue());
            default: throw new IllegalArgumentException(told.toString());
        }
    }

    private static Object integer(BigInteger value) {
        return value.bitLength() < 64 ? (Object) value.longValue() : value;
    }

    private static Object real(String text) {
        switch (text) {
            case "nan": return Double.NaN;
            case "inf": return Double.POSITIVE_INFINITY;
            case "-inf": return Double.NEGATIVE_INFINITY;
            default: return Double.valueOf(text);
        }
    }

    private static List<Object> list(List<?> told) {
        List<Object> list = new ArrayList<>();
        for (Object item : told) {
            list.add(value(item));
        }
        return list;
    }

    private static Map<Object, Object> dict(List<?> pairs) {
        Map<Object, Object> dict = new HashMap<>();
        for (Object pair : pairs) {
            dict.put(value(((List<?>) pair).get(0)), value(((List<?>) pair).get(1)));
        }
        return dict;
    }

    private static Object repeat(Object unit, int times) {
        if (unit instanceof String) {
            return ((String) unit).repeat(times);
        }
        if (unit instanceof byte[]) {
            return new String((byte[]) unit, StandardCharsets.ISO_8859_1).repeat(times).getBytes(
                StandardCharsets.ISO_8859_1);
        }
        return new ArrayList<>(Collections.nCopies(times, ((List<?>) unit).get(0)));
    }

    /** Hexadecimal text; {@code *n;} repeats the byte before it, n times in all. */
    static byte[] bytes(String hex) {
        java.io.ByteArrayOutputStream out = new java.io.ByteArrayOutputStream();
        int last = 0;
        for (int i = 0; i < hex.length(); ) {
            if (hex.charAt(i) == '*') {
                int end = hex.indexOf(';', i);
                for (int n = Integer.parseInt(hex.substring(i + 1, end)); n > 1; n--) {
                    out.write(last);
                }
                i = end + 1;
            } else {
                last = Integer.parseInt(hex.substring(i, i + 2), 16);
                out.write(last);
                i += 2;
            }
        }
        return out.toByteArray();
    }

    static String hex(byte[] bytes, int from, int to) {
        StringBuilder hex = new StringBuilder();
        for (int i = from; i < to; i++) {
            hex.append(String.format("%02x", bytes[i]));
        }
        return hex.toString();
    }
}
