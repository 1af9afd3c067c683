package leeward.multilang;

import java.io.IOException;
import java.util.AbstractList;
import java.util.RandomAccess;
import leeward.grouping.KeyGroups;

/**
 * A tuple's values as the component packed them. A task that only passes them on never unpacks them: they are copied
 * from pipe to network to pipe. Whoever asks for one (a grouping, a stock bolt) gets it decoded, each time anew.
 */
final class PackedValues extends AbstractList<Object> implements RandomAccess, KeyGroups.Texts {
    /** The values one after the other, without the array's own head; known to be well formed and fit to travel. */
    final byte[] body;
    private final int size;

    PackedValues(int size, byte[] body) {
        this.size = size;
        this.body = body;
    }

    @Override
    public int size() {
        return size;
    }

    @Override
    public Object get(int index) {
        if (index < 0 || index >= size) {
            throw new IndexOutOfBoundsException("value " + index + " of " + size);
        }
        try {
            return at(index).value();
        } catch (IOException | PackReader.UnfitException e) {
            throw damaged(e);
        }
    }

    @Override
    public long feed(int crc, int index) {
        try {
            return at(index).feed(crc);
        } catch (IOException e) {
            throw damaged(e);
        }
    }

    private PackReader at(int index) throws IOException {
        PackReader reader = new PackReader();
        reader.on(body, body.length);
        for (int i = 0; i < index; i++) {
            reader.skip();
        }
        return reader;
    }

    private static IllegalStateException damaged(Exception e) {
        return new IllegalStateException("a tuple was damaged on its way", e);
    }
}
