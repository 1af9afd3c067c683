package leeward.multilang;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;

import com.esotericsoftware.kryo.io.Input;
import java.math.BigInteger;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.storm.serialization.KryoValuesDeserializer;
import org.apache.storm.serialization.KryoValuesSerializer;
import org.apache.storm.utils.Utils;
import org.junit.jupiter.api.Test;

/** With Storm's own serialization around it, as between workers. */
class PackedTupleSerializerTest {
    private static List<Object> travel(List<Object> values) {
        Map<String, Object> conf = Utils.readDefaultConfig();
        conf.put("topology.tuple.serializer", PackedTupleSerializer.class.getName());
        byte[] bytes = new KryoValuesSerializer(conf).serialize(values);
        return new KryoValuesDeserializer(conf).deserializeFrom(new Input(bytes));
    }

    @Test
    void packedValuesStayPacked() throws Exception {
        byte[] body = Vectors.bytes("a161cd0101c0");
        List<Object> there = travel(new PackedValues(3, body));
        assertEquals(PackedValues.class, there.getClass());
        assertNotSame(body, ((PackedValues) there).body);
        assertArrayEquals(body, ((PackedValues) there).body);
        assertEquals(Arrays.asList("a", 257L, null), there);
        assertEquals(List.of(), travel(new PackedValues(0, new byte[0])));
    }

    @Test
    void othersTravelAsStormSendsThem() {
        List<Object> values = Arrays.asList("a", 1, 2L, null, BigInteger.TEN.pow(30), List.of(), Map.of());
        assertEquals(values, travel(Arrays.asList(values.get(0), 1, 2L, null, values.get(4), new java.util.ArrayList<>(),
            new java.util.HashMap<>())));
    }
}
