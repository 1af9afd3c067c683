package leeward.plugin;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.storm.shade.org.apache.curator.framework.CuratorFramework;
import org.apache.storm.shade.org.apache.zookeeper.data.Stat;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes the newest snapshot to {@code <root>/snapshot} from a thread of its own.
 *
 * <p>The newest one wins: those that come while ZooKeeper is slow or away are never written. Each offer, changed or
 * not, makes the thread look at the znode, so one that is missing or somebody else's is put right within a pass. A long
 * one is packed, here and only if it has changed.
 */
final class SnapshotPublisher implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(SnapshotPublisher.class);

    private final CuratorFramework zookeeper;
    private final Access access;
    private final String root;
    private final String path;
    private final long retryMs;
    private final Thread thread = new Thread(this::run, "leeward-snapshot");

    /** The newest snapshot not yet looked at; guarded by this. */
    private byte[] offered;
    private boolean closed;

    /** The snapshot in the znode as far as we know, unpacked, and its version after our write; the thread's own. */
    private byte[] written;
    private int version;
    private boolean closedToOthers;

    /**
     * A publisher that is not started.
     *
     * @param retryMs the pause after a failed write, in milliseconds
     */
    SnapshotPublisher(CuratorFramework zookeeper, Access access, String root, long retryMs) {
        this.zookeeper = zookeeper;
        this.access = access;
        this.root = root;
        this.path = root + "/snapshot";
        this.retryMs = retryMs;
        thread.setDaemon(true);
    }

    void start() {
        thread.start();
    }

    /** Takes a snapshot for publication and returns at once. */
    synchronized void offer(String snapshot) {
        offered = snapshot.getBytes(StandardCharsets.UTF_8);
        notifyAll();
    }

    private void run() {
        boolean failing = false;
        try {
            for (byte[] snapshot = take(); snapshot != null; snapshot = take()) {
                try {
                    publish(snapshot);
                    failing = false;
                } catch (InterruptedException e) {
                    throw e;
                } catch (Exception e) {
                    if (!failing) {
                        LOG.warn("leeward: snapshot not published, will try again: {}", e.toString());
                    }
                    failing = true;
                    putBack(snapshot);
                    Thread.sleep(retryMs);
                }
            }
        } catch (InterruptedException closing) {
            LOG.debug("leeward: snapshot thread ends");
        }
    }

    /** Waits for an offer; null when closed. */
    private synchronized byte[] take() throws InterruptedException {
        while (offered == null && !closed) {
            wait();
        }
        byte[] snapshot = closed ? null : offered;
        offered = null;
        return snapshot;
    }

    private synchronized void putBack(byte[] snapshot) {
        if (offered == null) {
            offered = snapshot;
        }
    }

    private void publish(byte[] snapshot) throws Exception {
        if (!closedToOthers) {
            access.closeOldZnodes(zookeeper, root);
            closedToOthers = true;
        }
        Stat stat = zookeeper.checkExists().forPath(path);
        if (stat != null && stat.getVersion() == version && Arrays.equals(snapshot, written)) {
            return;
        }
        byte[] packed = Packed.of(snapshot);
        Packed.checkSize(packed);
        if (stat == null) {
            zookeeper.create().creatingParentsIfNeeded().forPath(path, packed);
            version = 0;
        } else {
            version = zookeeper.setData().forPath(path, packed).getVersion();
        }
        written = snapshot;
    }

    @Override
    public void close() {
        synchronized (this) {
            closed = true;
            notifyAll();
        }
        thread.interrupt();
    }
}
