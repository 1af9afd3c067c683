package leeward.multilang;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JsonTest {
    private static String print(Object value) {
        StringBuilder out = new StringBuilder();
        Json.print(value, out);
        return out.toString();
    }

    @Test
    void readsOnlyClassesThatKryoKnows() throws Exception {
        List<?> list = (List<?>) Json.parse(
            " [1, -7, 1.5, -73.98771000000001, 1e3, 9223372036854775807, 9223372036854775808, {\"a\": [true, null]}] ");
        assertEquals(Arrays.asList(1L, -7L, 1.5, -73.98771000000001, 1000.0, Long.MAX_VALUE,
            BigInteger.ONE.shiftLeft(63), Collections.singletonMap("a", Arrays.asList(true, null))), list);
        assertEquals(ArrayList.class, list.getClass());
        assertEquals(HashMap.class, list.get(7).getClass());
    }

    @Test
    void readsWhatSimplejsonWritesForOddNumbersAndText() throws Exception {
        assertEquals(Arrays.asList(Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, "\u00e9\ud83d\ude00\n\"\\/\b\f\r\t"),
            Json.parse("[NaN, Infinity, -Infinity, \"\\u00e9\\ud83d\\ude00\\n\\\"\\\\\\/\\b\\f\\r\\t\"]"));
    }

    @Test
    void printsWhatItReads() throws Exception {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("text", "Z\u00fcrich \ud83d\ude00 \u2028 \n\"\\ \u0001");
        map.put("numbers", Arrays.asList(1L, 0.1, -1e300, BigInteger.TEN.pow(30)));
        map.put("rest", Arrays.asList(true, null, Collections.emptyMap(), Collections.emptyList()));
        assertEquals(map, Json.parse(print(map)));
    }

    @Test
    void printsWhatAStockComponentCanRead() {
        assertEquals("[1,255]", print(new byte[] {1, -1}));
        assertEquals("[null,null]", print(Arrays.asList(Double.NaN, Float.NEGATIVE_INFINITY)));
        assertEquals("\"NEW\"", print(Thread.State.NEW));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "[", "[1", "[1,", "{\"a\"", "{\"a\":", "{a:1}", "{1:2}", "\"a", "\"\\", "\"\\u12\"", "\"\\x\"",
        "tru", "nul", "1 2", "--1", "1.2.3", "]", "In"})
    void saysWhereMalformedTextIs(String text) {
        IOException error = assertThrows(IOException.class, () -> Json.parse(text));
        assertTrue(error.getMessage().contains("at character"), error.getMessage());
    }
}
