import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Scanner;
import org.apache.kafka.common.errors.UnknownServerException;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/**
 * Reads lines of an API key, a version, and a request body with an x before it. Prints the body of its error response,
 * likewise, or "none" where there is none and "later" where the version is of a later release.
 */
public final class ErrorResponses {
    public static void main(String[] arguments) {
        Scanner input = new Scanner(System.in);
        StringBuilder printed = new StringBuilder();
        while (input.hasNextInt()) {
            ApiKeys key = ApiKeys.forId(input.nextInt());
            short version = input.nextShort();
            String written = input.next().substring(1);
            if (version > key.latestVersion(true)) {
                printed.append("later\n");
                continue;
            }
            ByteBuffer body = ByteBuffer.wrap(HexFormat.of().parseHex(written));
            printed.append(answer(AbstractRequest.parseRequest(key, version, body).request, version)).append('\n');
        }
        System.out.print(printed);
    }

    private static String answer(AbstractRequest request, short version) {
        AbstractResponse response = request.getErrorResponse(0, new UnknownServerException("a bug"));
        if (response == null) {
            return "none";
        }
        Message data = response.data();
        ByteBuffer written = MessageUtil.toByteBuffer(data, version);
        byte[] bytes = new byte[written.remaining()];
        written.get(bytes);
        return "x" + HexFormat.of().formatHex(bytes);
    }
}
