package barnabas.probe;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/** Prints what each case found as one line of JSON. */
final class Report {
    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    /** A case returns what it found; what it throws becomes the line's "error". */
    interface Case {
        void run(Map<String, Object> found) throws Exception;
    }

    void run(String name, Case body) {
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("case", name);
        try {
            body.run(found);
        } catch (Throwable thrown) {
            Throwable cause = thrown;
            while (cause instanceof java.util.concurrent.ExecutionException && cause.getCause() != null) {
                cause = cause.getCause();
            }
            found.put("error", cause.toString());
        }
        StringBuilder line = new StringBuilder("{");
        found.forEach((key, value) -> {
            line.append(line.length() == 1 ? "" : ",").append(quote(key)).append(':');
            line.append(value instanceof Number || value instanceof Boolean ? value : quote(String.valueOf(value)));
        });
        out.println(line.append('}'));
    }

    private static String quote(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                quoted.append('\\').append(c);
            } else if (c < ' ') {
                quoted.append(String.format("\\u%04x", (int) c));
            } else {
                quoted.append(c);
            }
        }
        return quoted.append('"').toString();
    }

    static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new IllegalStateException(otherwise);
        }
    }
}
