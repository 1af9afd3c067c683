package leeward.plugin;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.zip.GZIPOutputStream;

/**
 * A snapshot as its znode holds it: as it is, or, if it is long, as {@code {"version":2,"gzip":"<base64>"}}.
 *
 * <p>ZooKeeper takes 1 MB. The envelope is JSON with a version of its own, so a service that does not know it names the
 * version, and short snapshots can be read by eye. The same text gives the same bytes.
 */
final class Packed {
    static final long VERSION = 2;
    /** Bytes of UTF-8 up to which a snapshot stays as it is. */
    static final int PLAIN_MOST = 64 * 1024;
    /** Of a packet of ZooKeeper, beside the data of a znode: header, path and more. */
    private static final int BESIDE = 1024;

    private Packed() {
    }

    /** The bytes of the znode. */
    static byte[] of(byte[] text) {
        if (text.length <= PLAIN_MOST) {
            return text;
        }
        String body = Base64.getEncoder().encodeToString(gzip(text));
        return ("{\"version\":" + VERSION + ",\"gzip\":\"" + body + "\"}").getBytes(StandardCharsets.US_ASCII);
    }

    /** Throws if ZooKeeper would end the connection instead of taking so many bytes. */
    static void checkSize(byte[] packed) {
        int most = Integer.getInteger("jute.maxbuffer", 0xfffff) - BESIDE;
        if (packed.length > most) {
            throw new IllegalStateException("the snapshot has " + packed.length + " bytes, ZooKeeper takes " + most
                + "; raise jute.maxbuffer of its servers, of Nimbus and of the service");
        }
    }

    private static byte[] gzip(byte[] text) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (GZIPOutputStream out = new GZIPOutputStream(bytes)) {
            out.write(text);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return bytes.toByteArray();
    }
}
