package leeward.multilang;

import java.io.IOException;
import java.io.OutputStream;
import java.util.concurrent.locks.LockSupport;

/**
 * What goes to the component, written in batches that are never older than a millisecond.
 *
 * <p>While messages are rare each is written at once, so light load waits for nothing. While they are frequent a batch
 * goes out when it is a millisecond old or 64 KiB long; a thread sees to the last batch of a burst, and ends when
 * nothing has been left over for some seconds.
 */
final class BatchedOutput {
    private static final int LONG_BYTES = 64 * 1024;
    private static final long OLD_NS = 1_000_000;
    /** More messages than this in a millisecond are frequent. */
    private static final int FREQUENT = 16;
    private static final long LEISURE_MS = 5_000;

    /** What has been collected; {@link #seal} says how it becomes a frame. Used under this object's lock only. */
    final PackWriter data = new PackWriter();

    private final OutputStream out;
    private boolean framed;
    private int items;
    private int before;
    private int recent;
    private long recentSince = System.nanoTime();
    private long writtenAt = recentSince - OLD_NS;
    private Thread flusher;
    private boolean flusherWaits;
    private IOException failure;

    BatchedOutput(OutputStream out) {
        this.out = out;
    }

    /** From now on batches are frames: a header, and an array of the items counted by {@link #commit}. */
    synchronized void beginFrames() {
        framed = true;
        data.reset(Frames.PREFIX);
    }

    /** A message of so many items is in {@link #data}. True: messages are frequent. Call it under this object's lock. */
    boolean commit(int count) throws IOException {
        if (failure != null) {
            throw failure;
        }
        items += count;
        long now = System.nanoTime();
        if (now - recentSince >= OLD_NS) {
            before = now - recentSince < 2 * OLD_NS ? recent : 0;
            recent = 0;
            recentSince = now;
        }
        recent++;
        boolean frequent = before > FREQUENT || recent > FREQUENT;
        if (!frequent || now - writtenAt >= OLD_NS || data.length() >= LONG_BYTES) {
            write(now);
        } else if (flusher == null) {
            flusher = new Thread(this::flushLateOnes, "leeward-flush");
            flusher.setDaemon(true);
            flusher.start();
        } else if (flusherWaits) {
            notifyAll();
        }
        return frequent;
    }

    /** Writes what there is. */
    synchronized void flush() throws IOException {
        if (failure != null) {
            throw failure;
        }
        write(System.nanoTime());
    }

    private void write(long now) throws IOException {
        if (items == 0) {
            return;
        }
        if (framed) {
            Frames.seal(data, items);
        }
        try {
            out.write(data.bytes(), 0, data.length());
            out.flush();
        } catch (IOException e) {
            failure = e;
            throw e;
        } finally {
            items = 0;
            data.reset(framed ? Frames.PREFIX : 0);
            writtenAt = now;
        }
    }

    private void flushLateOnes() {
        while (true) {
            long due;
            synchronized (this) {
                if (items == 0 && !await()) {
                    flusher = null;
                    return;
                }
                due = writtenAt + OLD_NS - System.nanoTime();
                if (due <= 0) {
                    try {
                        write(System.nanoTime());
                    } catch (IOException e) {
                        return; // kept as the failure: whoever writes next gets it
                    }
                    continue;
                }
            }
            LockSupport.parkNanos(due);
        }
    }

    /** Waits for items; false if none came for long. */
    private boolean await() {
        flusherWaits = true;
        try {
            wait(LEISURE_MS);
        } catch (InterruptedException e) {
            return false;
        } finally {
            flusherWaits = false;
        }
        return items > 0;
    }
}
