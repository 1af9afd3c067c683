package leeward.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import org.apache.storm.shade.org.apache.zookeeper.ZooDefs;
import org.apache.storm.shade.org.apache.zookeeper.data.ACL;
import org.apache.storm.shade.org.apache.zookeeper.data.Id;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The plugin's reading of the secrets file; what ZooKeeper makes of it is in {@link ZooKeeperTest}. */
class AccessTest {
    @TempDir
    Path folder;

    private Map<String, Object> conf(String text, String mode) throws IOException {
        Path file = folder.resolve("secrets.json");
        Files.writeString(file, text);
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(mode));
        return Map.of(Access.FILE, file.toString());
    }

    @Test
    void theIdentityAndTheAclAreThoseOfThePythonClients() throws IOException {
        Access access = Access.of(conf("{\"redis_password\": \"r\", \"zookeeper_secret\": \"s3cret\"}", "rw-------"));
        assertEquals("leeward:s3cret", new String(access.login(), StandardCharsets.UTF_8));
        // as kazoo.security.make_digest_acl("leeward", "s3cret", all=True) has it
        Id id = new Id("digest", "leeward:ZS0dWk+caYH4M+tNoWipoGE7h9I=");
        assertEquals(List.of(new ACL(ZooDefs.Perms.ALL, id)), access.acl());
    }

    @Test
    void withoutAFileOrASecretEverythingIsOpen() throws IOException {
        for (Map<String, Object> conf : List.of(Map.<String, Object>of(), conf("{}", "r--------"))) {
            Access access = Access.of(conf);
            assertNull(access.login());
            assertNull(access.acl());
        }
    }

    @Test
    void aFileThatOthersCanReadOrThatIsNotRightIsRefusedWithoutShowingIt() throws IOException {
        String good = "{\"zookeeper_secret\": \"hidden\"}";
        for (String mode : List.of("rw-r-----", "rw----r--", "rw--w----")) {
            Map<String, Object> conf = conf(good, mode);
            String said = assertThrows(IOException.class, () -> Access.of(conf)).getMessage();
            assertTrue(said.contains("has mode " + mode) && said.contains("chmod 600"), said);
        }
        for (String text : List.of("{\"zookeeper_secret\": hidden}", "[\"hidden\"]", "",
            "{\"zookeeper_secret\": [\"hidden\"]}", "{\"zookeeper_secret\": \"\"}")) {
            Map<String, Object> conf = conf(text, "rw-------");
            String said = assertThrows(IOException.class, () -> Access.of(conf)).getMessage();
            assertFalse(said.contains("hidden"), said);
            assertTrue(said.contains("secrets.json"), said);
        }
        Map<String, Object> missing = Map.of(Access.FILE, folder.resolve("none").toString());
        assertThrows(IOException.class, () -> Access.of(missing));
    }
}
