package barnabas.vectors;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;

/**
 * Prints one JSON line for each (message, version, variant): the field values and the bytes that
 * kafka-clients' own serializer makes of them.
 *
 * The values are pseudo-random, seeded by message, version and variant, so two runs print the same.
 */
public final class MessageVectors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT =
        new PrintStream(System.out, false, StandardCharsets.UTF_8);

    private MessageVectors() {
    }

    public static void main(String[] args) throws Exception {
        int variants = Integer.getInteger("variants", 3);
        for (ApiMessageType type : ApiMessageType.values()) {
            ApiMessage request;
            try {
                request = type.newRequest();
            } catch (UnsupportedVersionException removed) {
                continue;  // 4.x keeps the keys of APIs it no longer has.
            }
            emit(type.name, type.apiKey(), "request", request, type.requestSchemas(), variants);
            emit(type.name, type.apiKey(), "response", type.newResponse(), type.responseSchemas(), variants);
        }
        emit("RequestHeader", -1, "header", new RequestHeaderData(), RequestHeaderData.SCHEMAS, variants);
        emit("ResponseHeader", -1, "header", new ResponseHeaderData(), ResponseHeaderData.SCHEMAS, variants);
        OUT.flush();
    }

    private static void emit(
        String api, int key, String kind, ApiMessage prototype, Schema[] schemas, int variants
    ) throws Exception {
        for (short version = 0; version < schemas.length; version++) {
            Schema schema = schemas[version];
            if (schema == null) {
                continue;
            }
            print(api, key, kind, version, "default", prototype, null);
            String seed = api + kind + version;
            printFilled(api, key, kind, version, "nulls", prototype, schema, seed);
            for (int i = 0; i < variants; i++) {
                printFilled(api, key, kind, version, "filled" + i, prototype, schema, seed);
            }
            if (ValueMaker.isFlexible(schema)) {
                printFilled(api, key, kind, version, "unknownTags", prototype, schema, seed);
            }
        }
    }

    /**
     * A schema does not always tell whether a structure or a records field may be null, so the
     * "nulls" variant is tried from the most daring to the tamest; the converter refuses the rest.
     */
    private static void printFilled(
        String api, int key, String kind, short version, String variant, ApiMessage prototype,
        Schema schema, String seed
    ) throws Exception {
        boolean nulls = variant.equals("nulls");
        for (int daring = nulls ? 3 : 0; ; daring--) {
            Random random = new Random((seed + variant).hashCode());
            ValueMaker maker = new ValueMaker(random, nulls, (daring & 2) != 0, (daring & 1) != 0);
            ObjectNode json = maker.object(schema);
            try {
                ApiMessage message = read(prototype, json, version);
                if (variant.equals("unknownTags")) {
                    addUnknownTags(message, random);
                }
                print(api, key, kind, version, variant, message, json);
                return;
            } catch (RuntimeException refused) {
                if (daring == 0) {
                    throw new IllegalStateException(api + " " + kind + " v" + version + " " + json, refused);
                }
            }
        }
    }

    private static void addUnknownTags(Message message, Random random) {
        byte[] value = new byte[random.nextInt(5)];
        random.nextBytes(value);
        message.unknownTaggedFields().add(new RawTaggedField(90, value));
        message.unknownTaggedFields().add(new RawTaggedField(70000, new byte[] {1, 2, 3}));
    }

    private static void print(
        String api, int key, String kind, short version, String variant, Message message, ObjectNode given
    ) throws Exception {
        JsonNode json = given == null ? write((ApiMessage) message, version) : given;
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBufferAccessor bytes = new ByteBufferAccessor(ByteBuffer.allocate(message.size(cache, version)));
        message.write(bytes, cache, version);
        ObjectNode line = JSON.createObjectNode();
        line.put("api", api).put("key", key).put("kind", kind).put("version", version).put("variant", variant);
        line.set("json", json);
        line.put("hex", hex(bytes.buffer().array()));
        OUT.println(JSON.writeValueAsString(line));
    }

    private static ApiMessage read(ApiMessage prototype, JsonNode json, short version) throws Exception {
        Method read = converter(prototype).getMethod("read", JsonNode.class, short.class);
        return (ApiMessage) invoke(read, json, version);
    }

    private static JsonNode write(ApiMessage message, short version) throws Exception {
        Method write = converter(message).getMethod("write", message.getClass(), short.class);
        return (JsonNode) invoke(write, message, version);
    }

    private static Class<?> converter(ApiMessage message) throws ClassNotFoundException {
        return Class.forName(message.getClass().getName() + "JsonConverter");
    }

    private static Object invoke(Method method, Object... arguments) throws Exception {
        try {
            return method.invoke(null, arguments);
        } catch (InvocationTargetException thrown) {
            throw (Exception) thrown.getCause();
        }
    }

    static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder(bytes.length * 2);
        for (byte b : bytes) {
            text.append(Character.forDigit((b >> 4) & 15, 16)).append(Character.forDigit(b & 15, 16));
        }
        return text.toString();
    }
}
