package leeward.plugin;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads and writes JSON (RFC 8259), strictly.
 *
 * <p>Own code because no JSON library is on the class path of every Storm 2.x (json-simple until 2.5, json-smart
 * since), and because theirs accept texts that Python refuses. Objects become maps in the order of the text, arrays
 * lists, whole numbers {@code Long}, others {@code Double}.
 */
final class Json {
    private static final int DEPTH_MAX = 64;

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** The text is not JSON; the message says where. */
    static final class Malformed extends Exception {
        Malformed(String message) {
            super(message);
        }
    }

    static Object read(String text) throws Malformed {
        Json json = new Json(text);
        Object value = json.value(0);
        json.space();
        if (json.at < text.length()) {
            throw json.malformed("the end");
        }
        return value;
    }

    static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private Object value(int depth) throws Malformed {
        if (depth > DEPTH_MAX) {
            throw malformed("at most " + DEPTH_MAX + " levels");
        }
        space();
        char c = at < text.length() ? text.charAt(at) : '\0';
        return switch (c) {
            case '{' -> object(depth);
            case '[' -> array(depth);
            case '"' -> string();
            case 't' -> word("true", Boolean.TRUE);
            case 'f' -> word("false", Boolean.FALSE);
            case 'n' -> word("null", null);
            default -> number();
        };
    }

    private Map<String, Object> object(int depth) throws Malformed {
        Map<String, Object> object = new LinkedHashMap<>();
        at++;
        if (next('}')) {
            return object;
        }
        do {
            space();
            if (at >= text.length() || text.charAt(at) != '"') {
                throw malformed("a name in quotes");
            }
            String name = string();
            expect(':');
            if (object.containsKey(name)) {
                throw malformed("each name once, not '" + name + "' again");
            }
            object.put(name, value(depth + 1));
        } while (next(','));
        expect('}');
        return object;
    }

    private List<Object> array(int depth) throws Malformed {
        List<Object> array = new ArrayList<>();
        at++;
        if (next(']')) {
            return array;
        }
        do {
            array.add(value(depth + 1));
        } while (next(','));
        expect(']');
        return array;
    }

    private String string() throws Malformed {
        StringBuilder out = new StringBuilder();
        for (at++; at < text.length(); at++) {
            char c = text.charAt(at);
            if (c == '"') {
                at++;
                return out.toString();
            } else if (c == '\\') {
                out.append(escaped());
            } else if (c < ' ') {
                break;
            } else {
                out.append(c);
            }
        }
        throw malformed("the end of a string");
    }

    /** Leaves the position on the last character of the escape. */
    private char escaped() throws Malformed {
        at++;
        char c = at < text.length() ? text.charAt(at) : '\0';
        int plain = "\"\\/bfnrt".indexOf(c);
        if (plain >= 0) {
            return "\"\\/\b\f\n\r\t".charAt(plain);
        }
        if (c != 'u' || at + 4 >= text.length() || !text.substring(at + 1, at + 5).matches("[0-9a-fA-F]{4}")) {
            throw malformed("an escape");
        }
        at += 4;
        return (char) Integer.parseInt(text.substring(at - 3, at + 1), 16);
    }

    private Number number() throws Malformed {
        int start = at;
        while (at < text.length() && "+-.0123456789eE".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String number = text.substring(start, at);
        if (!number.matches("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?")) {
            at = start;
            throw malformed("a value");
        }
        try {
            return number.matches("-?[0-9]+") ? (Number) Long.valueOf(number) : (Number) Double.valueOf(number);
        } catch (NumberFormatException tooLarge) {
            return Double.valueOf(number);
        }
    }

    private Object word(String word, Object value) throws Malformed {
        if (!text.startsWith(word, at)) {
            throw malformed("a value");
        }
        at += word.length();
        return value;
    }

    private void space() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private boolean next(char c) {
        space();
        if (at < text.length() && text.charAt(at) == c) {
            at++;
            return true;
        }
        return false;
    }

    private void expect(char c) throws Malformed {
        if (!next(c)) {
            throw malformed("'" + c + "'");
        }
    }

    private Malformed malformed(String expected) {
        String found = at < text.length() ? "'" + text.charAt(at) + "'" : "the end";
        return new Malformed("character " + at + " is " + found + ", expected " + expected);
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof Map<?, ?> map) {
            String separator = "{";
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                out.append(separator);
                write(String.valueOf(entry.getKey()), out);
                out.append(':');
                write(entry.getValue(), out);
                separator = ",";
            }
            out.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof Iterable<?> list) {
            String separator = "";
            out.append('[');
            for (Object item : list) {
                out.append(separator);
                write(item, out);
                separator = ",";
            }
            out.append(']');
        } else if (value == null || value instanceof Number || value instanceof Boolean) {
            out.append(value);
        } else {
            quote(value.toString(), out);
        }
    }

    private static void quote(String string, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < string.length(); i++) {
            char c = string.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ' || Character.isSurrogate(c)) {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }
}
