package leeward.plugin;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Base64;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.storm.shade.org.apache.curator.framework.CuratorFramework;
import org.apache.storm.shade.org.apache.zookeeper.KeeperException;
import org.apache.storm.shade.org.apache.zookeeper.ZooDefs;
import org.apache.storm.shade.org.apache.zookeeper.data.ACL;
import org.apache.storm.shade.org.apache.zookeeper.data.Id;
import org.apache.storm.utils.ZookeeperAuthInfo;

/**
 * The plugin's identity at ZooKeeper, and the ACL of its znodes.
 *
 * <p>The secrets file that {@code leeward.secrets.file} names holds {@code zookeeper_secret}. With it the plugin
 * authenticates (scheme digest, user leeward), and the znodes belong to that identity alone, as those of the scheduler
 * service and of the tasks do (leeward/wire/zookeeper.py). Without it every client may read and write them.
 *
 * @param login the identity; null for Storm's own
 * @param acl the ACL of all znodes; null for ZooKeeper's open one
 */
record Access(byte[] login, List<ACL> acl) {
    /** Path of the secrets file, the same on each node. */
    static final String FILE = "leeward.secrets.file";

    private static final String USER = "leeward";
    private static final String SECRET = "zookeeper_secret";
    private static final Set<PosixFilePermission> OWNER = EnumSet.of(PosixFilePermission.OWNER_READ,
        PosixFilePermission.OWNER_WRITE, PosixFilePermission.OWNER_EXECUTE);

    /**
     * As the configuration says.
     *
     * @throws IOException if the file cannot be read, or others can read it, or it is not right
     */
    static Access of(Map<String, Object> conf) throws IOException {
        Object file = conf.get(FILE);
        if (file == null) {
            return new Access(null, null);
        }
        Object secret = secrets(Path.of(file.toString())).get(SECRET);
        if (secret == null) {
            return new Access(null, null);
        }
        if (!(secret instanceof String text) || text.isEmpty()) {
            throw new IOException(file + ": " + SECRET + " is no text, or empty; quote it, or leave it out");
        }
        String login = USER + ":" + text;
        ACL own = new ACL(ZooDefs.Perms.ALL, new Id("digest", USER + ":" + digest(login)));
        // ZooKeeper's client asks the list for null, which List.of() answers with an exception
        return new Access(login.getBytes(StandardCharsets.UTF_8), Collections.singletonList(own));
    }

    private static Map<?, ?> secrets(Path file) throws IOException {
        Set<PosixFilePermission> mode = Files.getPosixFilePermissions(file);
        if (!OWNER.containsAll(mode)) {
            throw new IOException(file + " has mode " + PosixFilePermissions.toString(mode)
                + ": others can read it; chmod 600 " + file);
        }
        try {
            if (Json.read(Files.readString(file)) instanceof Map<?, ?> secrets) {
                return secrets;
            }
        } catch (Json.Malformed e) {
            // its message may quote what is in the file
            throw new IOException(file + " is not a JSON object");
        }
        throw new IOException(file + " is not a JSON object");
    }

    /** How ZooKeeper writes a digest identity: it keeps a hash of the secret, not the secret. */
    private static String digest(String login) {
        try {
            byte[] hash = MessageDigest.getInstance("SHA1").digest(login.getBytes(StandardCharsets.UTF_8));
            return Base64.getEncoder().encodeToString(hash);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JVM has SHA1", e);
        }
    }

    /** For Curator; Storm's own identity if there is no secret. */
    ZookeeperAuthInfo info(Map<String, Object> conf) {
        return login == null ? new ZookeeperAuthInfo(conf) : new ZookeeperAuthInfo("digest", login);
    }

    /**
     * Closes the znodes that an installation without a secret left open: those that all topologies share.
     *
     * <p>The znodes of a topology are the scheduler service's to close, which knows whether its tasks have the secret.
     */
    void closeOldZnodes(CuratorFramework zookeeper, String root) throws Exception {
        if (acl == null) {
            return;
        }
        for (String shared : List.of(root + "/placement", root + "/draining")) {
            for (String child : children(zookeeper, shared)) {
                close(zookeeper, shared + "/" + child);
            }
            close(zookeeper, shared);
        }
        for (String path : List.of(root + "/snapshot", root + "/topologies", root)) {
            close(zookeeper, path);
        }
    }

    private static List<String> children(CuratorFramework zookeeper, String path) throws Exception {
        try {
            return zookeeper.getChildren().forPath(path);
        } catch (KeeperException.NoNodeException e) {
            return List.of();
        }
    }

    private void close(CuratorFramework zookeeper, String path) throws Exception {
        try {
            if (!acl.equals(zookeeper.getACL().forPath(path))) {
                zookeeper.setACL().withACL(acl).forPath(path);
            }
        } catch (KeeperException.NoNodeException e) {
            return;
        }
    }
}
