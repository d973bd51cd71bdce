import java.util.HexFormat;
import java.util.Scanner;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** Writes what users ssl.principal.mapping.rules make of names; lines have both in hexadecimal UTF-8. */
public final class PrincipalRules {
    public static void main(String[] args) throws Exception {
        Scanner lines = new Scanner(System.in);
        StringBuilder found = new StringBuilder();
        while (lines.hasNextLine()) {
            String[] asked = lines.nextLine().split(" ", -1);
            String user;
            try {
                user = "=" + SslPrincipalMapper.fromRules(text(asked[0])).getName(text(asked[1]));
            } catch (java.io.IOException noRule) {
                user = "none";
            }
            found.append(HexFormat.of().formatHex(user.getBytes("UTF-8"))).append('\n');
        }
        System.out.print(found);
    }

    private static String text(String digits) throws Exception {
        return new String(HexFormat.of().parseHex(digits), "UTF-8");
    }
}
