import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;

import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/** Remote storage in a folder, of which two reads out of three take longer than a fetch waits for them. */
public class SlowRemoteStorage implements RemoteStorageManager {
    private final AtomicInteger reads = new AtomicInteger();
    private Path folder;
    private long delayMs;

    @Override
    public void configure(Map<String, ?> settings) {
        folder = Path.of(settings.get("folder").toString());
        delayMs = Long.parseLong(settings.get("delay.ms").toString());
    }

    private Path place(RemoteLogSegmentMetadata segment, String kind) {
        return folder.resolve(segment.remoteLogSegmentId().id() + "." + kind);
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata segment, LogSegmentData data)
            throws RemoteStorageException {
        try {
            Files.createDirectories(folder);
            Files.copy(data.logSegment(), place(segment, "log"));
            Files.copy(data.offsetIndex(), place(segment, IndexType.OFFSET.name()));
            Files.copy(data.timeIndex(), place(segment, IndexType.TIMESTAMP.name()));
            Files.copy(data.producerSnapshotIndex(), place(segment, IndexType.PRODUCER_SNAPSHOT.name()));
            if (data.transactionIndex().isPresent()) {
                Files.copy(data.transactionIndex().get(), place(segment, IndexType.TRANSACTION.name()));
            }
            ByteBuffer epochs = data.leaderEpochIndex().duplicate();
            byte[] text = new byte[epochs.remaining()];
            epochs.get(text);
            Files.write(place(segment, IndexType.LEADER_EPOCH.name()), text);
            return Optional.empty();
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start) throws RemoteStorageException {
        return fetchLogSegment(segment, start, Integer.MAX_VALUE - 1);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start, int end)
            throws RemoteStorageException {
        try {
            if (reads.getAndIncrement() % 3 != 2) {
                Thread.sleep(delayMs);
            }
            byte[] log = Files.readAllBytes(place(segment, "log"));
            return new ByteArrayInputStream(Arrays.copyOfRange(log, start, Math.min(log.length, end + 1)));
        } catch (IOException | InterruptedException error) {
            throw new RemoteStorageException(error);
        }
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType kind) throws RemoteStorageException {
        Path index = place(segment, kind.name());
        if (!Files.exists(index)) {
            throw new RemoteResourceNotFoundException("no " + kind);
        }
        try {
            return new ByteArrayInputStream(Files.readAllBytes(index));
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        try (var files = Files.list(folder)) {
            String name = segment.remoteLogSegmentId().id().toString();
            for (Path file : files.filter(one -> one.getFileName().toString().startsWith(name)).toList()) {
                Files.delete(file);
            }
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }

    @Override
    public void close() {
    }
}
