package leeward.plugin;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/** What the znode of a topology holds: a plan, or something that cannot be read as one. */
sealed interface Wish permits PlacementPlan, Wish.Unreadable {

    /** Why the znode's content is no plan for this plugin, in words for the topology's status. */
    record Unreadable(String reason) implements Wish {
    }

    /** Reads a znode's content, which is null if it was created without any. */
    static Wish read(byte[] znode) {
        byte[] bytes = znode == null ? new byte[0] : znode;
        try {
            // a decoder of its own: new String() would replace what is not UTF-8 instead of refusing it
            String text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
            return PlacementPlan.of(Json.read(text));
        } catch (CharacterCodingException e) {
            return new Unreadable("plan is malformed: not UTF-8");
        } catch (Json.Malformed e) {
            return new Unreadable("plan is malformed JSON: " + e.getMessage());
        }
    }
}
