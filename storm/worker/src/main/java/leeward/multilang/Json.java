package leeward.multilang;

import java.io.IOException;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON as Python writes it: NaN and the infinities are there, integers have any length.
 *
 * <p>An integer becomes a Long (a BigInteger beyond 64 bits), a decimal a Double, nested values ArrayList and HashMap:
 * only classes that Storm's Kryo knows. Written by hand because no JSON library is in every Storm 2.x.
 */
final class Json {
    private static final int DEEPEST = 500;

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** Reads one value. */
    static Object parse(String text) throws IOException {
        Json json = new Json(text);
        Object value = json.value(0);
        json.space();
        if (json.at < text.length()) {
            throw json.malformed("the end");
        }
        return value;
    }

    /**
     * Appends a value. What JSON has not: bytes become a list of numbers, NaN and the infinities null (simplejson refuses
     * them), any other class its text.
     */
    static void print(Object value, StringBuilder out) {
        if (value instanceof String) {
            quote((String) value, out);
        } else if (value instanceof Double || value instanceof Float) {
            out.append(Double.isFinite(((Number) value).doubleValue()) ? value.toString() : "null");
        } else if (value == null || value instanceof Number || value instanceof Boolean) {
            out.append(value);
        } else if (value instanceof Map) {
            char separator = '{';
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                out.append(separator);
                quote(String.valueOf(entry.getKey()), out);
                out.append(':');
                print(entry.getValue(), out);
                separator = ',';
            }
            out.append(separator == '{' ? "{}" : "}");
        } else if (value instanceof Collection) {
            char separator = '[';
            for (Object item : (Collection<?>) value) {
                out.append(separator);
                print(item, out);
                separator = ',';
            }
            out.append(separator == '[' ? "[]" : "]");
        } else if (value instanceof byte[]) {
            print(octets((byte[]) value), out);
        } else {
            quote(value.toString(), out);
        }
    }

    private static List<Object> octets(byte[] bytes) {
        List<Object> octets = new ArrayList<>(bytes.length);
        for (byte octet : bytes) {
            octets.add((long) (octet & 0xff));
        }
        return octets;
    }

    private static void quote(String string, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < string.length(); i++) {
            char c = string.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 0x20 || c >= 0x7f && c < 0xa0 || c >= 0x2028 && c <= 0x2029 || Character.isSurrogate(c)) {
                out.append("\\u");
                for (int shift = 12; shift >= 0; shift -= 4) {
                    out.append(Character.forDigit(c >> shift & 15, 16));
                }
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }

    private Object value(int depth) throws IOException {
        space();
        if (depth > DEEPEST) {
            throw malformed("fewer than " + DEEPEST + " levels");
        }
        char c = at < text.length() ? text.charAt(at) : 0;
        switch (c) {
            case '{': return map(depth);
            case '[': return list(depth);
            case '"': return string();
            case 't': return word("true", true);
            case 'f': return word("false", false);
            case 'n': return word("null", null);
            case 'N': return word("NaN", Double.NaN);
            case 'I': return word("Infinity", Double.POSITIVE_INFINITY);
            default: return text.startsWith("-I", at) ? word("-Infinity", Double.NEGATIVE_INFINITY) : number();
        }
    }

    private Object word(String word, Object value) throws IOException {
        if (!text.startsWith(word, at)) {
            throw malformed("a value");
        }
        at += word.length();
        return value;
    }

    private Map<Object, Object> map(int depth) throws IOException {
        Map<Object, Object> map = new HashMap<>();
        at++;
        if (next('}')) {
            return map;
        }
        do {
            space();
            if (at >= text.length() || text.charAt(at) != '"') {
                throw malformed("a key");
            }
            String key = string();
            if (!next(':')) {
                throw malformed("a colon");
            }
            map.put(key, value(depth + 1));
        } while (next(','));
        if (!next('}')) {
            throw malformed("a comma or a closing brace");
        }
        return map;
    }

    private List<Object> list(int depth) throws IOException {
        List<Object> list = new ArrayList<>();
        at++;
        if (next(']')) {
            return list;
        }
        do {
            list.add(value(depth + 1));
        } while (next(','));
        if (!next(']')) {
            throw malformed("a comma or a closing bracket");
        }
        return list;
    }

    private String string() throws IOException {
        int start = ++at;
        while (at < text.length() && text.charAt(at) != '"' && text.charAt(at) != '\\') {
            at++;
        }
        if (at < text.length() && text.charAt(at) == '"') {
            return text.substring(start, at++);
        }
        StringBuilder out = new StringBuilder(text.substring(start, at));
        while (at < text.length()) {
            char c = text.charAt(at++);
            if (c == '"') {
                return out.toString();
            }
            out.append(c == '\\' ? escaped() : c);
        }
        throw malformed("a closing quote");
    }

    private char escaped() throws IOException {
        char c = at < text.length() ? text.charAt(at++) : 0;
        switch (c) {
            case '"': case '\\': case '/': return c;
            case 'b': return '\b';
            case 'f': return '\f';
            case 'n': return '\n';
            case 'r': return '\r';
            case 't': return '\t';
            case 'u':
                try {
                    int code = Integer.parseInt(text.substring(at, at + 4), 16);
                    at += 4;
                    return (char) code;
                } catch (NumberFormatException | StringIndexOutOfBoundsException e) {
                    throw malformed("four hexadecimal digits");
                }
            default: throw malformed("an escape");
        }
    }

    private Object number() throws IOException {
        int start = at;
        boolean whole = true;
        for (; at < text.length(); at++) {
            char c = text.charAt(at);
            if (c == '.' || c == 'e' || c == 'E') {
                whole = false;
            } else if ((c < '0' || c > '9') && c != '-' && c != '+') {
                break;
            }
        }
        String digits = text.substring(start, at);
        try {
            if (!whole) {
                return Double.valueOf(digits);
            }
            return digits.length() < 19 ? (Object) Long.valueOf(digits) : big(digits);
        } catch (NumberFormatException e) {
            at = start;
            throw malformed("a value");
        }
    }

    private static Object big(String digits) {
        BigInteger value = new BigInteger(digits);
        return value.bitLength() < 64 ? (Object) value.longValue() : value;
    }

    private boolean next(char wanted) {
        space();
        if (at < text.length() && text.charAt(at) == wanted) {
            at++;
            return true;
        }
        return false;
    }

    private void space() {
        while (at < text.length() && text.charAt(at) <= ' ') {
            at++;
        }
    }

    private IOException malformed(String wanted) {
        String rest = text.substring(Math.min(at, text.length()), Math.min(text.length(), at + 60));
        return new IOException("the component sent JSON with '" + rest + "' at character " + at + ", where " + wanted
            + " must be");
    }
}
