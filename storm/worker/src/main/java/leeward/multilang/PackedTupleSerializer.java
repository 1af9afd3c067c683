package leeward.multilang;

import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.Serializer;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import org.apache.storm.serialization.types.ListDelegateSerializer;
import org.apache.storm.utils.ListDelegate;

/** Between workers {@link PackedValues} travel as they are; all other tuples as Storm would send them. */
public final class PackedTupleSerializer extends Serializer<ListDelegate> {
    private final Serializer<ListDelegate> plain = new ListDelegateSerializer();

    @Override
    public void write(Kryo kryo, Output output, ListDelegate values) {
        if (values.getDelegate() instanceof PackedValues) {
            PackedValues packed = (PackedValues) values.getDelegate();
            output.writeVarInt(packed.size() + 1, true);
            output.writeVarInt(packed.body.length, true);
            output.writeBytes(packed.body);
        } else {
            output.writeVarInt(0, true);
            plain.write(kryo, output, values);
        }
    }

    @Override
    public ListDelegate read(Kryo kryo, Input input, Class<? extends ListDelegate> type) {
        int head = input.readVarInt(true);
        if (head == 0) {
            return plain.read(kryo, input, type);
        }
        ListDelegate values = new ListDelegate();
        values.setDelegate(new PackedValues(head - 1, input.readBytes(input.readVarInt(true))));
        return values;
    }
}
