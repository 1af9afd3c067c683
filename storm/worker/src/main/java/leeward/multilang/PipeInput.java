package leeward.multilang;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import org.apache.storm.multilang.NoOutputException;

/** What comes from the component: text messages or frames, read in large pieces. Used by one thread. */
final class PipeInput {
    private static final int PIECE = 64 * 1024;

    private final InputStream in;
    private final byte[] piece = new byte[PIECE];
    private int position;
    private int end;
    private final byte[] header = new byte[Frames.HEADER];
    private byte[] frame = new byte[PIECE];
    private volatile boolean waits;

    PipeInput(InputStream in) {
        this.in = in;
    }

    /** The lines before one that is {@code end}: a message of Storm's JSON form. */
    String readText(String task) throws IOException, NoOutputException {
        ByteArrayOutputStream text = new ByteArrayOutputStream();
        int line = 0;
        while (true) {
            if (position == end && !fill()) {
                throw gone(task, text.size() == 0 ? "" : "; it ended in: " + text.toString("UTF-8"));
            }
            int start = position;
            while (position < end && piece[position] != '\n') {
                position++;
            }
            text.write(piece, start, position - start);
            if (position == end) {
                continue;
            }
            position++;
            if (text.size() - line == 3 && text.toString("ISO-8859-1").startsWith("end", line)) {
                return new String(text.toByteArray(), 0, Math.max(0, line - 1), StandardCharsets.UTF_8);
            }
            text.write('\n');
            line = text.size();
        }
    }

    /** Reads the next frame into {@code reader}. */
    void readFrame(PackReader reader, String task) throws IOException, NoOutputException {
        int came = read(header, Frames.HEADER);
        if (came < Frames.HEADER) {
            throw gone(task, came == 0 ? "" : "; it ended in: " + seen(header, came));
        }
        int length = Frames.length(header);
        if (length < 0) {
            throw new IOException(task + " sent bytes that are no frame: " + seen(header, came)
                + ". Something in it writes to Storm's pipe, or the pipe was cut within a frame");
        }
        if (frame.length < length || frame.length > PIECE && length <= PIECE) {
            frame = new byte[Math.max(length, PIECE)];
        }
        if (read(frame, length) < length) {
            throw gone(task, " within a frame of " + length + " bytes");
        }
        reader.on(frame, length);
    }

    private static String seen(byte[] bytes, int count) {
        StringBuilder seen = new StringBuilder();
        for (int i = 0; i < count; i++) {
            seen.append(String.format("%02x ", bytes[i]));
        }
        String text = new String(bytes, 0, count, StandardCharsets.ISO_8859_1).replaceAll("[^ -~]", ".");
        return seen.append("(as text: ").append(text).append(')').toString();
    }

    /** How many of {@code length} bytes came before the end. */
    private int read(byte[] target, int length) throws IOException {
        int got = 0;
        while (got < length) {
            if (position == end && length - got >= PIECE) {
                int count = receive(target, got, length - got);
                if (count < 0) {
                    return got;
                }
                got += count;
                continue;
            }
            if (position == end && !fill()) {
                return got;
            }
            int count = Math.min(length - got, end - position);
            System.arraycopy(piece, position, target, got, count);
            position += count;
            got += count;
        }
        return got;
    }

    private boolean fill() throws IOException {
        position = 0;
        end = Math.max(0, receive(piece, 0, PIECE));
        return end > 0;
    }

    private int receive(byte[] target, int offset, int length) throws IOException {
        waits = true;
        int count = in.read(target, offset, length);
        waits = false;
        return count;
    }

    /** Whether the reading thread waits for input. Callable from any thread. */
    boolean waits() {
        return waits;
    }

    private static NoOutputException gone(String task, String where) {
        return new NoOutputException("Pipe to subprocess seems to be broken: the process of " + task + " has ended"
            + where + ". Serializer Exception:\n");
    }
}
