package leeward.grouping;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.zip.CRC32;
import org.apache.storm.shade.net.minidev.json.JSONValue;
import org.junit.jupiter.api.Test;

class KeyGroupsTest {
    private static int group(Object... key) {
        int[] positions = new int[key.length];
        String[] fields = new String[key.length];
        for (int i = 0; i < key.length; i++) {
            positions[i] = i;
            fields[i] = "f" + i;
        }
        return KeyGroups.group(Arrays.asList(key), positions, fields, "source");
    }

    private static int expected(String text) {
        CRC32 crc = new CRC32();
        crc.update(text.getBytes(StandardCharsets.UTF_8));
        return (int) (crc.getValue() % KeyGroups.GROUPS);
    }

    /** The file that the Python side is held to as well; read with the parser that Storm reads tuples with. */
    @Test
    void agreesWithTheVectorsOfBothLanguages() throws Exception {
        String text = Files.readString(Path.of(System.getProperty("vectors.dir"), "key_groups.json"));
        Map<?, ?> file = (Map<?, ?>) JSONValue.parseWithException(text);
        assertEquals(KeyGroups.GROUPS, file.get("groups"));
        List<?> vectors = (List<?>) file.get("vectors");
        assertTrue(vectors.size() > 100, vectors.size() + " vectors");
        for (Object each : vectors) {
            Map<?, ?> vector = (Map<?, ?>) each;
            assertEquals(vector.get("group"), group(((List<?>) vector.get("key")).toArray()),
                () -> "key " + vector.get("key"));
        }
    }

    @Test
    void agreesWithTheLibrarysCrcOnRandomText() {
        Random random = new Random(3);
        for (int round = 0; round < 2000; round++) {
            StringBuilder text = new StringBuilder();
            for (int length = random.nextInt(12); length > 0; length--) {
                int point = random.nextInt(1 << (7 + random.nextInt(14)));
                text.appendCodePoint(point >= 0xd800 && point < 0xe000 || point > 0x10ffff ? 'x' : point);
            }
            assertEquals(expected(text.toString()), group(text.toString()), text.toString());
        }
    }

    @Test
    void everyTypeOfIntegerIsItsDigits() {
        Random random = new Random(4);
        for (int round = 0; round < 2000; round++) {
            long number = random.nextLong() >> random.nextInt(64);
            assertEquals(expected(Long.toString(number)), group(number));
            assertEquals(expected(Integer.toString((int) number)), group((int) number));
        }
        assertEquals(group("-7"), group((short) -7));
        assertEquals(group("-7"), group((byte) -7));
        assertEquals(expected(Long.toString(Long.MIN_VALUE)), group(Long.MIN_VALUE));
    }

    @Test
    void fieldsAreJoined() {
        assertEquals(expected("ab\u001f-5"), group("ab", -5));
    }

    @Test
    void anIllegalKeyIsNamed() {
        for (Object key : Arrays.asList(true, 1.5, 1.5f, new BigDecimal("1.5"), List.of(1), Map.of(), new byte[0])) {
            String message = assertThrows(IllegalArgumentException.class, () -> group("a", key)).getMessage();
            assertTrue(message.startsWith("key field 'f1' of component 'source' is a " + key.getClass()
                .getSimpleName()), message);
        }
        List<Object> values = Collections.singletonList(null);
        String message = assertThrows(IllegalArgumentException.class,
            () -> KeyGroups.group(values, new int[] {0}, new String[] {"route"}, "source")).getMessage();
        assertTrue(message.startsWith("key field 'route' of component 'source' is null"), message);
    }

    @Test
    void aLoneSurrogateIsRefused() {
        for (String text : List.of("\ud83d", "\ude00", "a\ude00", "\ud83dx", "\ud83d\ud83d\ude00")) {
            assertThrows(IllegalArgumentException.class, () -> group(text));
        }
    }
}
