import java.util.HexFormat;
import java.util.Scanner;
import javax.security.auth.x500.X500Principal;

/** Writes the names whose DER comes in lines of hexadecimal digits, each in hexadecimal UTF-8. */
public final class Names {
    public static void main(String[] args) throws Exception {
        Scanner lines = new Scanner(System.in);
        StringBuilder found = new StringBuilder();
        while (lines.hasNextLine()) {
            byte[] der = HexFormat.of().parseHex(lines.nextLine());
            String name = new X500Principal(der).getName();
            found.append(HexFormat.of().formatHex(name.getBytes("UTF-8"))).append('\n');
        }
        System.out.print(found);
    }
}
