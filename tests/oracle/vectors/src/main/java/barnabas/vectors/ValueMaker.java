package barnabas.vectors;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BinaryNode;
import com.fasterxml.jackson.databind.node.BooleanNode;
import com.fasterxml.jackson.databind.node.DoubleNode;
import com.fasterxml.jackson.databind.node.IntNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.LongNode;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.ShortNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Random;
import java.util.zip.CRC32C;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

/** Makes JSON values for the fields of one version of a message, as the JSON converters read them. */
final class ValueMaker {
    private static final String[] WORDS = {
        "", "a", "topic", "orders-eu", "PLAINTEXT", "127.0.0.1", "größe", "日本", "consumer-1", "🐟 x",
    };
    private static final long[] EDGES = {0, 1, -1, 127, -128, 300, 70000, -70000, Long.MAX_VALUE, Long.MIN_VALUE};

    private final Random random;
    private final boolean nulls;
    private final boolean nullStructures;
    private final boolean nullRecords;

    ValueMaker(Random random, boolean nulls, boolean nullStructures, boolean nullRecords) {
        this.random = random;
        this.nulls = nulls;
        this.nullStructures = nullStructures;
        this.nullRecords = nullRecords;
    }

    static boolean isFlexible(Schema schema) {
        for (BoundField field : schema.fields()) {
            if (field.def.type instanceof TaggedFields) {
                return true;
            }
        }
        return false;
    }

    ObjectNode object(Schema schema) {
        ObjectNode object = JsonNodeFactory.instance.objectNode();
        for (BoundField field : schema.fields()) {
            if (field.def.type instanceof TaggedFields) {
                for (org.apache.kafka.common.protocol.types.Field tagged : known((TaggedFields) field.def.type)) {
                    if (random.nextInt(4) != 0) {
                        object.set(camelCase(tagged.name), value(tagged.type));
                    }
                }
            } else {
                object.set(camelCase(field.def.name), value(field.def.type));
            }
        }
        return object;
    }

    private JsonNode value(Type type) {
        if (type instanceof Schema) {
            return nullStructures ? NullNode.instance : object((Schema) type);
        }
        if (type.getClass().getSimpleName().equals("NullableSchema")) {
            return nulls || random.nextInt(6) == 0 ? NullNode.instance : object((Schema) type);
        }
        if (type.toString().endsWith("RECORDS")) {
            return nullRecords ? NullNode.instance : BinaryNode.valueOf(recordBatch());
        }
        if (type.isNullable() && (nulls || random.nextInt(6) == 0)) {
            return NullNode.instance;
        }
        if (type.isArray()) {
            ArrayNode array = JsonNodeFactory.instance.arrayNode();
            // Arrays nest; an average just above one keeps the deep messages small.
            int count = nulls ? 1 : random.nextInt(4);
            for (int i = 0; i < count; i++) {
                array.add(value(type.arrayElementType().get()));
            }
            return array;
        }
        return scalar(type);
    }

    private JsonNode scalar(Type type) {
        switch (type.toString()) {
            case "BOOLEAN":
                return BooleanNode.valueOf(random.nextBoolean());
            case "INT8":
                return ShortNode.valueOf((byte) integer());
            case "INT16":
                return ShortNode.valueOf((short) integer());
            case "UINT16":
                return IntNode.valueOf((int) integer() & 0xffff);
            case "INT32":
                return IntNode.valueOf((int) integer());
            case "UINT32":
                return LongNode.valueOf(integer() & 0xffffffffL);
            case "INT64":
                return LongNode.valueOf(integer());
            case "FLOAT64":
                return DoubleNode.valueOf(random.nextInt(2000000) / 1024.0 - 500);
            case "UUID":
                return TextNode.valueOf(new Uuid(random.nextLong(), random.nextLong()).toString());
            case "BYTES":
            case "COMPACT_BYTES":
            case "NULLABLE_BYTES":
            case "COMPACT_NULLABLE_BYTES":
                byte[] bytes = new byte[random.nextInt(8)];
                random.nextBytes(bytes);
                return BinaryNode.valueOf(bytes);
            case "STRING":
            case "COMPACT_STRING":
            case "NULLABLE_STRING":
            case "COMPACT_NULLABLE_STRING":
                return TextNode.valueOf(text());
            default:
                throw new IllegalArgumentException("no values for type " + type);
        }
    }

    private long integer() {
        return random.nextInt(3) == 0 ? EDGES[random.nextInt(EDGES.length)] : random.nextInt(100000);
    }

    private String text() {
        // Now and then long enough for a two-byte compact length.
        return random.nextInt(60) == 0 ? "x".repeat(126 + random.nextInt(4)) : WORDS[random.nextInt(WORDS.length)];
    }

    /** A right version 2 batch of one record, so that readers which look inside find sense. */
    private byte[] recordBatch() {
        byte[] value = text().getBytes(java.nio.charset.StandardCharsets.UTF_8);
        value = value.length > 40 ? new byte[40] : value;
        int recordSize = 1 + 1 + 1 + 1 + 1 + value.length + 1;
        ByteBuffer batch = ByteBuffer.allocate(61 + 1 + recordSize);
        batch.putLong(random.nextInt(1000)).putInt(49 + 1 + recordSize).putInt(-1).put((byte) 2).putInt(0);
        batch.putShort((short) 0).putInt(0).putLong(1700000000000L).putLong(1700000000000L);
        batch.putLong(-1).putShort((short) -1).putInt(-1).putInt(1);
        batch.put((byte) (recordSize << 1)).put((byte) 0).put((byte) 0).put((byte) 0).put((byte) 1);
        batch.put((byte) (value.length << 1)).put(value).put((byte) 0);
        CRC32C crc = new CRC32C();
        crc.update(batch.array(), 21, batch.capacity() - 21);
        batch.putInt(17, (int) crc.getValue());
        return batch.array();
    }

    @SuppressWarnings("unchecked")
    private static Iterable<org.apache.kafka.common.protocol.types.Field> known(TaggedFields tagged) {
        try {
            Field fields = TaggedFields.class.getDeclaredField("fields");
            fields.setAccessible(true);
            return ((Map<Integer, org.apache.kafka.common.protocol.types.Field>) fields.get(tagged)).values();
        } catch (ReflectiveOperationException unexpected) {
            throw new IllegalStateException(unexpected);
        }
    }

    /** Schemas name fields in snake case, the JSON converters in camel case. */
    private static String camelCase(String snakeCase) {
        StringBuilder name = new StringBuilder();
        for (String part : snakeCase.split("_")) {
            String word = part.equals("kraft") ? "kRaft" : part;
            name.append(name.length() == 0 ? word : Character.toUpperCase(word.charAt(0)) + word.substring(1));
        }
        return name.toString();
    }
}
