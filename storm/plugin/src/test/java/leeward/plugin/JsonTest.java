package leeward.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JsonTest {
    @Test
    void readsEveryKindOfValue() throws Exception {
        assertEquals(Map.of("a", Arrays.asList(1L, -2L, 0.5, 1e3, true, false, null, "x"), "b", Map.of(), "c",
            List.of()),
            Json.read(" {\"a\" : [1,-2, 0.5,1e3 ,true,false,null,\"x\"],\n\"b\":{ },\t\"c\":[ ]} "));
    }

    @Test
    void readsEscapes() throws Exception {
        assertEquals("\"\\/\b\f\n\r\t\u00e9\ud83d\ude00\u00e9",
            Json.read("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83d\\ude00\u00e9\""));
    }

    @Test
    void aNumberBeyondLongIsNoWholeNumber() throws Exception {
        assertInstanceOf(Double.class, Json.read("9223372036854775808"));
        assertEquals(Long.MAX_VALUE, Json.read("9223372036854775807"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " ", "{", "[1,]", "{\"a\":1,}", "{a:1}", "{'a':1}", "{\"a\" 1}", "[1 2]", "01", "+1",
        "1.",
        ".5", "1e", "-", "NaN", "Infinity", "tru", "\"", "\"\\x\"", "\"\\u12g4\"", "\"\\u12", "\"a\nb\"", "1 1", "[1]]",
        "{\"a\":1,\"a\":1}", "\ufeff1"})
    void refusesWhatIsNotJson(String text) {
        assertThrows(Json.Malformed.class, () -> Json.read(text));
    }

    @Test
    void refusesDepthThatWouldOverflowTheStack() {
        assertThrows(Json.Malformed.class, () -> Json.read("[".repeat(100_000)));
    }

    @Test
    void saysWhereItStopped() {
        String message = assertThrows(Json.Malformed.class, () -> Json.read("{\"a\": 1, b: 2}")).getMessage();
        assertEquals("character 9 is 'b', expected a name in quotes", message);
    }

    @Test
    void readsWhatItWrites() throws Exception {
        Object value = Map.of("k\"\\\n\u0001\u00e9\ud83d\ude00", Arrays.asList(1L, null, true, 2.5, List.of(),
            Map.of()));
        assertEquals(value, Json.read(Json.write(value)));
    }

    @Test
    void aZnodeThatIsNotUtf8IsNoPlan() {
        Wish.Unreadable wish = assertInstanceOf(Wish.Unreadable.class,
            Wish.read("{\"\u00e9".getBytes(StandardCharsets.ISO_8859_1)));
        assertTrue(wish.reason().contains("UTF-8"), wish.reason());
        assertInstanceOf(Wish.Unreadable.class, Wish.read(null));
        assertInstanceOf(Wish.Unreadable.class, Wish.read(new byte[0]));
    }
}
