package leeward.plugin;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The wanted placement of one topology, as the scheduler service wrote it.
 *
 * @param topologyId the running topology it was made for; a topology submitted anew has another id
 * @param epoch      the service's number of this placement, growing
 * @param slots      every slot that the topology shall have
 */
record PlacementPlan(String topologyId, long epoch, List<Slot> slots) implements Wish {
    static final long VERSION = 1;
    /** The epoch of a placement that was made before Storm had placed anything of the topology. */
    static final long FIRST = 0;

    /**
     * One worker.
     *
     * @param node  the supervisor's host name
     * @param port  one of the supervisor's ports
     * @param tasks the tasks to run there; each is an executor of its own
     */
    record Slot(String node, int port, List<Integer> tasks) {
        Slot {
            tasks = List.copyOf(tasks);
        }

        @Override
        public String toString() {
            return node + ":" + port;
        }
    }

    /** A field is missing or of the wrong type. */
    private static final class Wrong extends Exception {
        Wrong(String message) {
            super(message);
        }
    }

    PlacementPlan {
        slots = List.copyOf(slots);
    }

    /** Reads a plan from parsed JSON. Unknown names are ignored, so that version 1 can gain hints. */
    static Wish of(Object json) {
        try {
            if (!(json instanceof Map<?, ?> plan)) {
                throw new Wrong("it is not an object");
            }
            long version = whole(plan, "version", Long.MAX_VALUE);
            if (version != VERSION) {
                String relation = version > VERSION ? ", newer than the " : ", not the ";
                return new Unreadable("plan has version " + version + relation + VERSION + " that this plugin reads");
            }
            List<Slot> slots = new ArrayList<>();
            for (Object slot : list(plan, "slots")) {
                slots.add(slot(slot));
            }
            refuseRepeats(slots);
            return new PlacementPlan(text(plan, "topology_id"), whole(plan, "epoch", Long.MAX_VALUE), slots);
        } catch (Wrong e) {
            return new Unreadable("plan is malformed: " + e.getMessage());
        }
    }

    private static void refuseRepeats(List<Slot> slots) throws Wrong {
        Set<String> named = new HashSet<>();
        Set<Integer> placed = new HashSet<>();
        for (Slot slot : slots) {
            if (!named.add(slot.toString())) {
                throw new Wrong("it lists slot " + slot + " twice");
            }
            for (int task : slot.tasks()) {
                if (!placed.add(task)) {
                    throw new Wrong("it lists task " + task + " twice");
                }
            }
        }
    }

    private static Slot slot(Object json) throws Wrong {
        if (!(json instanceof Map<?, ?> slot)) {
            throw new Wrong("'slots' holds " + json + ", not an object");
        }
        List<Integer> tasks = new ArrayList<>();
        for (Object task : list(slot, "tasks")) {
            tasks.add((int) whole(task, "tasks", Integer.MAX_VALUE));
        }
        if (tasks.isEmpty()) {
            throw new Wrong("a slot has no 'tasks'");
        }
        return new Slot(text(slot, "node"), (int) whole(slot, "port", 65535), tasks);
    }

    private static String text(Map<?, ?> object, String name) throws Wrong {
        if (object.get(name) instanceof String text) {
            return text;
        }
        throw new Wrong("'" + name + "' is " + shown(object.get(name)) + ", not a text");
    }

    private static List<?> list(Map<?, ?> object, String name) throws Wrong {
        if (object.get(name) instanceof List<?> list) {
            return list;
        }
        throw new Wrong("'" + name + "' is " + shown(object.get(name)) + ", not a list");
    }

    private static long whole(Map<?, ?> object, String name, long max) throws Wrong {
        return whole(object.get(name), name, max);
    }

    private static long whole(Object value, String name, long max) throws Wrong {
        if (value instanceof Long number && number >= 0 && number <= max) {
            return number;
        }
        throw new Wrong("'" + name + "' is " + shown(value) + ", not a whole number from 0 to " + max);
    }

    /** A bad plan may be large; a status shall not be. */
    private static String shown(Object value) {
        String text = Json.write(value);
        return value == null ? "missing" : text.length() > 40 ? text.substring(0, 40) + "..." : text;
    }
}
