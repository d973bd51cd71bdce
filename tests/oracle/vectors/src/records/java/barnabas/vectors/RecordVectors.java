package barnabas.vectors;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;

/**
 * Prints record batches as kafka-clients builds them, one JSON line each, with the records that
 * kafka-clients reads back from them (so log append time and offsets are as a consumer sees them).
 */
public final class RecordVectors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT =
        new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private static final long START = 1700000000000L;
    private static final long APPENDED = 1700000999999L;

    private RecordVectors() {
    }

    /** What a producer may put in its batch besides records. */
    private record Producer(long id, short epoch, int sequence, boolean transactional) {
        static final Producer NONE = new Producer(-1, (short) -1, -1, false);
    }

    public static void main(String[] args) throws Exception {
        List<Producer> producers = List.of(
            Producer.NONE,
            new Producer(4000, (short) 3, 17, false),
            new Producer(Long.MAX_VALUE, Short.MAX_VALUE, Integer.MAX_VALUE - 1, true));
        for (CompressionType codec : CompressionType.values()) {
            for (byte magic = 0; magic <= 2; magic++) {
                if (codec == CompressionType.ZSTD && magic < 2) {
                    continue;
                }
                for (TimestampType stamp : List.of(TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME)) {
                    if (magic == 0 && stamp == TimestampType.LOG_APPEND_TIME) {
                        continue;
                    }
                    for (int count : new int[] {1, 3, 40}) {
                        for (Producer producer : magic < 2 ? List.of(Producer.NONE) : producers) {
                            batch(magic, codec, stamp, count, producer, false);
                        }
                        batch(magic, codec, stamp, count, Producer.NONE, true);
                    }
                }
            }
        }
        marker(ControlRecordType.COMMIT);
        marker(ControlRecordType.ABORT);
        OUT.flush();
    }

    private static void batch(
        byte magic, CompressionType codec, TimestampType stamp, int count, Producer producer, boolean gaps
    ) throws Exception {
        Random random = new Random(magic * 1000L + codec.id * 100 + stamp.id * 10 + count + producer.sequence());
        long baseOffset = random.nextInt(3) == 0 ? 0 : random.nextInt(1 << 20);
        MemoryRecordsBuilder builder = MemoryRecords.builder(
            ByteBuffer.allocate(1 << 16), magic, Compression.of(codec).build(),
            stamp, baseOffset, stamp == TimestampType.LOG_APPEND_TIME ? APPENDED : -1L,
            producer.id(), producer.epoch(), producer.sequence(), producer.transactional(),
            magic < 2 ? -1 : 5);
        long offset = baseOffset;
        for (int i = 0; i < count; i++) {
            long timestamp = magic == 0 ? -1 : START + random.nextInt(100000) - 50000;
            byte[] key = bytes(random, count == 40 ? 8 : 80);
            byte[] value = bytes(random, count == 40 ? 60 : 300);
            if (magic < 2) {
                builder.appendWithOffset(offset, timestamp, key, value);
            } else {
                builder.appendWithOffset(offset, timestamp, key, value, headers(random));
            }
            offset += gaps ? 1 + random.nextInt(3) : 1;
        }
        print(magic, codec, stamp, producer, gaps, builder.build());
    }

    private static void marker(ControlRecordType type) throws Exception {
        MemoryRecords marker = MemoryRecords.withEndTransactionMarker(
            77, START, 5, 4000, (short) 3, new EndTransactionMarker(type, 12));
        print((byte) 2, CompressionType.NONE, TimestampType.CREATE_TIME, new Producer(4000, (short) 3, -1, true), false, marker);
    }

    /** Null, empty, or letters from a small alphabet, which the codecs can shrink. */
    private static byte[] bytes(Random random, int bound) {
        int kind = random.nextInt(8);
        if (kind == 0) {
            return null;
        }
        byte[] bytes = new byte[kind == 1 ? 0 : random.nextInt(bound)];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) ('a' + random.nextInt(4));
        }
        return bytes;
    }

    private static Header[] headers(Random random) {
        Header[] headers = new Header[random.nextInt(3)];
        for (int i = 0; i < headers.length; i++) {
            headers[i] = new RecordHeader(i == 1 ? "" : "trace-ü", bytes(random, 20));
        }
        return headers;
    }

    private static void print(
        byte magic, CompressionType codec, TimestampType stamp, Producer producer, boolean gaps, MemoryRecords records
    ) throws Exception {
        ByteBuffer buffer = records.buffer().duplicate();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        ObjectNode line = JSON.createObjectNode();
        line.put("magic", magic).put("codec", codec.name).put("timestampType", stamp.id).put("gaps", gaps);
        line.put("producerId", producer.id()).put("producerEpoch", producer.epoch());
        line.put("baseSequence", producer.sequence()).put("transactional", producer.transactional());
        List<MutableRecordBatch> batches = new ArrayList<>();
        records.batches().forEach(batches::add);
        RecordBatch first = batches.get(0);
        line.put("control", first.isControlBatch()).put("batches", batches.size());
        line.put("baseOffset", first.baseOffset()).put("lastOffset", batches.get(batches.size() - 1).lastOffset());
        line.put("leaderEpoch", first.partitionLeaderEpoch()).put("maxTimestamp", first.maxTimestamp());
        line.put("crc", magic < 2 ? 0 : first.checksum());
        ArrayNode list = line.putArray("records");
        for (Record record : records.records()) {
            ObjectNode item = list.addObject().put("offset", record.offset()).put("timestamp", record.timestamp());
            item.put("key", text(record.key())).put("value", text(record.value()));
            ArrayNode headers = item.putArray("headers");
            for (Header header : record.headers()) {
                headers.addArray().add(header.key()).add(header.value() == null ? null : MessageVectors.hex(header.value()));
            }
        }
        line.put("hex", MessageVectors.hex(bytes));
        OUT.println(JSON.writeValueAsString(line));
    }

    private static String text(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return MessageVectors.hex(bytes);
    }
}
