package leeward.multilang;

import java.io.IOException;
import java.io.OutputStream;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

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

    /** Held by whoever puts a message together, and while bytes are written. */
    final ReentrantLock lock = new ReentrantLock();
    /** What has been collected; under {@link #lock} only. */
    final PackWriter data = new PackWriter();

    private final OutputStream out;
    private final Condition something = lock.newCondition();
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
    void beginFrames() {
        framed = true;
        data.reset(Frames.PREFIX);
    }

    /** A message of so many items is in {@link #data}. Call it under {@link #lock}. */
    void commit(int count) throws IOException {
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
            something.signal();
        }
    }

    /** Writes what there is. */
    void flush() throws IOException {
        lock.lock();
        try {
            if (failure != null) {
                throw failure;
            }
            write(System.nanoTime());
        } finally {
            lock.unlock();
        }
    }

    /**
     * From now on nothing is written, and what comes is refused.
     *
     * @return false if another thread is still writing after that time
     */
    boolean close(long patienceMs) throws InterruptedException {
        if (!lock.tryLock(patienceMs, TimeUnit.MILLISECONDS)) {
            return false;
        }
        try {
            if (failure == null) {
                failure = new IOException("the process has ended");
            }
            items = 0;
            something.signal();
        } finally {
            lock.unlock();
        }
        return true;
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
            lock.lock();
            try {
                if (failure != null || items == 0 && !awaitItems()) {
                    flusher = null;
                    return;
                }
                due = writtenAt + OLD_NS - System.nanoTime();
                if (due <= 0) {
                    write(System.nanoTime());
                    continue;
                }
            } catch (IOException e) {
                return; // kept as the failure: whoever writes next gets it
            } finally {
                lock.unlock();
            }
            LockSupport.parkNanos(due);
        }
    }

    /** False if none came for long. */
    private boolean awaitItems() {
        flusherWaits = true;
        try {
            something.await(LEISURE_MS, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            return false;
        } finally {
            flusherWaits = false;
        }
        return items > 0;
    }
}
