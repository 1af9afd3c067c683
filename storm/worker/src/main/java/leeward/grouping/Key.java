package leeward.grouping;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.generated.Grouping;
import org.apache.storm.generated.JavaObject;
import org.apache.storm.generated.JavaObjectArg;
import org.apache.storm.task.WorkerTopologyContext;
import org.apache.storm.tuple.Fields;

/** The fields of one stream that a {@link KeyedGrouping} routes by. Both ends of a stream ask it for a tuple's group. */
public final class Key {
    private final String component;
    private final String[] fields;
    private final int[] positions;

    Key(WorkerTopologyContext context, GlobalStreamId stream, String... fields) {
        Fields declared = context.getComponentOutputFields(stream);
        this.component = stream.get_componentId();
        this.fields = fields;
        this.positions = new int[fields.length];
        for (int i = 0; i < fields.length; i++) {
            if (!declared.contains(fields[i])) {
                throw new IllegalArgumentException("component '" + component + "' has no field '" + fields[i]
                    + "' on its stream '" + stream.get_streamId() + "', which declares " + declared.toList());
            }
            positions[i] = declared.fieldIndex(fields[i]);
        }
    }

    /** The keys of a component's input, by source component and stream; other streams are not keyed. */
    public static Map<String, Map<String, Key>> inputs(WorkerTopologyContext context, String component) {
        Map<String, Map<String, Key>> keys = new HashMap<>();
        for (Map.Entry<GlobalStreamId, Grouping> input : context.getSources(component).entrySet()) {
            GlobalStreamId stream = input.getKey();
            JavaObject custom = input.getValue().is_set_custom_object() ? input.getValue().get_custom_object() : null;
            if (custom != null && KeyedGrouping.class.getName().equals(custom.get_full_class_name())) {
                List<String> fields =
                    custom.get_args_list().stream().map(JavaObjectArg::get_string_arg).collect(Collectors.toList());
                keys.computeIfAbsent(stream.get_componentId(), source -> new HashMap<>())
                    .put(stream.get_streamId(), new Key(context, stream, fields.toArray(new String[0])));
            }
        }
        return keys;
    }

    /**
     * The key group of a tuple, 0 to 127.
     *
     * @throws IllegalArgumentException if a key is neither a string nor an integer; names field, type and component
     */
    public int group(List<Object> values) {
        return KeyGroups.group(values, positions, fields, component);
    }
}
