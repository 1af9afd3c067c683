package leeward.plugin;

import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.storm.shade.org.apache.curator.framework.CuratorFramework;
import org.apache.storm.shade.org.apache.curator.framework.listen.Listenable;
import org.apache.storm.shade.org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.storm.shade.org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.storm.shade.org.apache.curator.framework.recipes.cache.PathChildrenCacheEvent;
import org.apache.storm.shade.org.apache.curator.framework.recipes.cache.PathChildrenCacheListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The wishes in {@code <root>/placement}, one znode for each topology name, kept up to date by watches.
 *
 * <p>All ZooKeeper work is on Curator's own thread; {@link #wishes()} only reads a field. While ZooKeeper is away the
 * last known wishes stay in force; after a reconnection the cache reads everything again.
 */
@SuppressWarnings("deprecation") // CuratorCache came with Storm 2.5; this one is in every 2.x
final class PlanSource implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(PlanSource.class);

    private final PathChildrenCache cache;
    private volatile Map<String, Wish> wishes;

    PlanSource(CuratorFramework zookeeper, String root) {
        cache = new PathChildrenCache(zookeeper, root + "/placement", true);
        listen(cache, (client, event) -> onEvent(event));
    }

    /** By reflection: the method's type is another in Storm 2.5 and older, so a call that was compiled is not found. */
    @SuppressWarnings("unchecked")
    private static void listen(PathChildrenCache cache, PathChildrenCacheListener listener) {
        try {
            Object listeners = PathChildrenCache.class.getMethod("getListenable").invoke(cache);
            ((Listenable<PathChildrenCacheListener>) listeners).addListener(listener);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("this release of Storm has another Curator", e);
        }
    }

    /** Starts to watch and returns at once, with or without a ZooKeeper. */
    void start() throws Exception {
        cache.start(PathChildrenCache.StartMode.POST_INITIALIZED_EVENT);
    }

    /** The present wishes by topology name; empty until the first reading is complete. */
    Optional<Map<String, Wish>> wishes() {
        return Optional.ofNullable(wishes);
    }

    private void onEvent(PathChildrenCacheEvent event) {
        switch (event.getType()) {
            case INITIALIZED -> read();
            case CHILD_ADDED, CHILD_UPDATED, CHILD_REMOVED -> {
                if (wishes != null) {
                    read();
                }
            }
            default -> LOG.info("leeward: placement watch: {}", event.getType());
        }
    }

    private void read() {
        Map<String, Wish> read = new TreeMap<>();
        for (ChildData znode : cache.getCurrentData()) {
            String topology = znode.getPath().substring(znode.getPath().lastIndexOf('/') + 1);
            Wish wish = Wish.read(znode.getData());
            read.put(topology, wish);
            if (wishes == null || !wish.equals(wishes.get(topology))) {
                LOG.info("leeward: {}: {}", topology, wish);
            }
        }
        wishes = read;
    }

    @Override
    public void close() throws Exception {
        cache.close();
    }
}
