package leeward.multilang;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.storm.multilang.NoOutputException;
import org.apache.storm.multilang.ShellMsg;

/**
 * Storm's multilang JSON, for components that do not know frames: the same messages as its JsonSerializer's, but in
 * batches, with every integer a Long (direct emits work) and every decimal a Double (Kryo knows it).
 */
final class JsonDialect extends Dialect {
    private static final byte[] END = "\nend\n".getBytes(StandardCharsets.US_ASCII);

    private final PipeInput input;
    private final String task;
    private final StringBuilder text = new StringBuilder(); // under the output's lock

    JsonDialect(PipeInput input, BatchedOutput output, String task) {
        super(output);
        this.input = input;
        this.task = task;
    }

    /** Sends a message at once. */
    void send(CharSequence json) throws IOException {
        output.lock.lock();
        try {
            message(json);
            output.flush();
        } finally {
            output.lock.unlock();
        }
    }

    @Override
    boolean ids() {
        return true;
    }

    @Override
    void put(String id, String component, String stream, long source, int group, List<Object> values)
        throws IOException {
        text.setLength(0);
        text.append("{\"id\":");
        Json.print(id, text);
        text.append(",\"comp\":");
        Json.print(component, text);
        text.append(",\"stream\":");
        Json.print(stream, text);
        text.append(",\"task\":").append(source).append(",\"tuple\":");
        Json.print(values, text);
        text.append('}');
        message(text);
    }

    @Override
    void command(String name, Object id) throws IOException {
        StringBuilder json = new StringBuilder("{\"command\":");
        Json.print(name, json);
        json.append(",\"id\":");
        Json.print(id, json);
        send(json.append('}'));
    }

    @Override
    void taskIds(List<Integer> tasks) throws IOException {
        StringBuilder json = new StringBuilder();
        Json.print(tasks, json);
        send(json);
    }

    private void message(CharSequence json) throws IOException {
        output.data.raw(json.toString().getBytes(StandardCharsets.UTF_8));
        output.data.raw(END);
        output.commit(1);
    }

    @Override
    ShellMsg read() throws IOException, NoOutputException {
        Object parsed = Json.parse(input.readText(task));
        if (!(parsed instanceof Map) || !(((Map<?, ?>) parsed).get("command") instanceof String)) {
            throw new IOException(task + " sent " + parsed + ", which is no multilang message");
        }
        Map<?, ?> fields = (Map<?, ?>) parsed;
        ShellMsg message = new ShellMsg();
        message.setCommand((String) fields.get("command"));
        message.setId(fields.get("id"));
        message.setMsg((String) fields.get("msg"));
        Object stream = fields.get("stream");
        message.setStream(stream == null ? "default" : (String) stream);
        Object direct = fields.get("task");
        message.setTask(direct == null ? 0 : ((Number) direct).longValue());
        message.setNeedTaskIds(!Boolean.FALSE.equals(fields.get("need_task_ids")));
        message.setTuple(list(fields.get("tuple")));
        Object anchors = fields.get("anchors");
        if (anchors != null) {
            for (Object anchor : anchors instanceof String ? Collections.singletonList(anchors) : list(anchors)) {
                message.addAnchor((String) anchor);
            }
        }
        Object name = fields.get("name");
        message.setMetricName(name instanceof String ? (String) name : null);
        message.setMetricParams(fields.get("params"));
        if (fields.get("level") instanceof Number) {
            message.setLogLevel(((Number) fields.get("level")).intValue());
        }
        return message;
    }

    @SuppressWarnings("unchecked")
    private static List<Object> list(Object value) {
        return (List<Object>) value;
    }
}
