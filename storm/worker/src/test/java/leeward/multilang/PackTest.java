package leeward.multilang;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import leeward.grouping.KeyGroups;
import org.junit.jupiter.api.Test;

class PackTest {
    private static byte[] write(Object value) {
        PackWriter writer = new PackWriter();
        writer.value(value);
        return Arrays.copyOf(writer.bytes(), writer.length());
    }

    private static Object read(byte[] bytes) throws Exception {
        PackReader reader = new PackReader();
        reader.on(bytes, bytes.length);
        Object value = reader.value();
        assertFalse(reader.hasMore());
        reader.back(0);
        reader.skip();
        assertFalse(reader.hasMore());
        return value;
    }

    /** byte[] has no equals of its own. */
    private static Object comparable(Object value) {
        if (value instanceof byte[]) {
            return "bytes " + Arrays.toString((byte[]) value);
        }
        if (value instanceof Collection) {
            List<Object> list = new ArrayList<>();
            ((Collection<?>) value).forEach(item -> list.add(comparable(item)));
            return list;
        }
        if (value instanceof Map) {
            Map<Object, Object> map = new HashMap<>();
            ((Map<?, ?>) value).forEach((key, item) -> map.put(comparable(key), comparable(item)));
            return map;
        }
        return value;
    }

    @Test
    void agreesWithTheVectorsOfBothLanguages() throws Exception {
        List<?> vectors = (List<?>) Vectors.read().get("values");
        assertTrue(vectors.size() > 60);
        for (Object each : vectors) {
            Map<?, ?> vector = (Map<?, ?>) each;
            Object value = Vectors.value(vector.get("value"));
            byte[] bytes = Vectors.bytes((String) vector.get("hex"));
            assertArrayEquals(bytes, write(value), () -> "writing " + vector);
            assertEquals(comparable(value), comparable(read(bytes)), () -> "reading " + vector);
        }
    }

    @Test
    void randomValuesSurvive() throws Exception {
        Random random = new Random(7);
        for (int round = 0; round < 3000; round++) {
            Object value = random(random, 0);
            assertEquals(comparable(value), comparable(read(write(value))));
        }
    }

    private static Object random(Random random, int depth) {
        switch (random.nextInt(depth > 3 ? 7 : 9)) {
            case 0: return null;
            case 1: return random.nextBoolean();
            case 2: return random.nextLong() >> random.nextInt(64);
            case 3: return Double.longBitsToDouble(random.nextLong());
            case 4: return randomText(random);
            case 5: {
                byte[] bytes = new byte[random.nextInt(20)];
                random.nextBytes(bytes);
                return bytes;
            }
            case 6: return BigInteger.ONE.shiftLeft(64 + random.nextInt(500)).negate().add(new BigInteger(60, random));
            case 7: {
                List<Object> list = new ArrayList<>();
                for (int i = random.nextInt(20); i > 0; i--) {
                    list.add(random(random, depth + 1));
                }
                return list;
            }
            default: {
                Map<Object, Object> map = new HashMap<>();
                for (int i = random.nextInt(20); i > 0; i--) {
                    map.put(randomText(random), random(random, depth + 1));
                }
                return map;
            }
        }
    }

    private static String randomText(Random random) {
        StringBuilder text = new StringBuilder();
        for (int length = random.nextInt(100); length > 0; length--) {
            int point = random.nextInt(1 << 7 + random.nextInt(14));
            text.appendCodePoint(point >= 0xd800 && point < 0xe000 || point > 0x10ffff ? 'x' : point);
        }
        return text.toString();
    }

    @Test
    void readsIntoClassesThatKryoKnows() throws Exception {
        Map<Object, Object> value = new HashMap<>();
        value.put("k", Arrays.asList(1, (short) 2, (byte) 3, 4L, 1.5f, new BigDecimal("2.5"), new byte[0], null, true));
        Map<?, ?> map = (Map<?, ?>) read(write(value));
        assertEquals(HashMap.class, map.getClass());
        List<?> list = (List<?>) map.get("k");
        assertEquals(ArrayList.class, list.getClass());
        List<Class<?>> classes = new ArrayList<>();
        list.forEach(item -> classes.add(item == null ? null : item.getClass()));
        assertEquals(Arrays.asList(Long.class, Long.class, Long.class, Long.class, Double.class, Double.class,
            byte[].class, null, Boolean.class), classes);
    }

    @Test
    void namesWhatHasNoForm() {
        IllegalArgumentException error = assertThrows(IllegalArgumentException.class, () -> write(Thread.State.NEW));
        assertTrue(error.getMessage().contains("java.lang.Thread$State (NEW)"), error.getMessage());
    }

    @Test
    void refusesWhatNoReceiverCouldTake() {
        Object deep = 1L;
        for (int level = 0; level < PackReader.DEEPEST + 1; level++) {
            deep = Collections.singletonList(deep);
        }
        byte[] tooDeep = write(deep);
        assertTrue(assertThrows(PackReader.UnfitException.class, () -> read(tooDeep)).getMessage().contains("nested"));
        byte[] listAsKey = write(Collections.singletonMap(Collections.singletonList(1L), 2L));
        assertTrue(assertThrows(PackReader.UnfitException.class, () -> read(listAsKey)).getMessage().contains("key"));
    }

    @Test
    void everyCutAndManyChangesEndInAnErrorOrAValueNeverInAnythingElse() throws Exception {
        Random random = new Random(1);
        for (int round = 0; round < 4000; round++) {
            byte[] bytes = write(random(random, 0));
            if (random.nextBoolean()) {
                bytes = Arrays.copyOf(bytes, random.nextInt(bytes.length));
            } else {
                bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
            }
            PackReader reader = new PackReader();
            reader.on(bytes, bytes.length);
            try {
                reader.value();
            } catch (IOException | PackReader.UnfitException expected) {
                // that is the point: no ArrayIndexOutOfBounds, no OutOfMemory, no endless loop
            }
            reader.back(0);
            try {
                reader.skip();
            } catch (IOException expected) {
                // as above
            }
        }
    }

    /** A key's group is computed from the bytes of a packed tuple; the vectors are those of both languages. */
    @Test
    void theGroupOfAPackedKeyAgreesWithTheVectors() throws Exception {
        String text = Files.readString(Path.of(System.getProperty("vectors.dir"), "key_groups.json"));
        for (Object each : (List<?>) ((Map<?, ?>) Json.parse(text)).get("vectors")) {
            Map<?, ?> vector = (Map<?, ?>) each;
            List<?> key = (List<?>) vector.get("key");
            PackWriter packed = new PackWriter();
            packed.value(List.of(0.5, "before"));
            key.forEach(packed::value);
            int[] positions = IntStream.rangeClosed(1, key.size()).toArray();
            PackedValues values = new PackedValues(key.size() + 1, Arrays.copyOf(packed.bytes(), packed.length()));
            assertEquals(((Long) vector.get("group")).intValue(),
                KeyGroups.group(values, positions, new String[key.size()], "source"), () -> "key " + key);
        }
    }
}
