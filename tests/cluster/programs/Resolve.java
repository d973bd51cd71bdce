import java.net.InetAddress;
import java.util.Scanner;

/** Prints the address of each name that is read from the standard input. */
public class Resolve {
    public static void main(String[] args) throws Exception {
        Scanner names = new Scanner(System.in);
        while (names.hasNextLine()) {
            System.out.println(InetAddress.getByName(names.nextLine()).getHostAddress());
            System.out.flush();
        }
    }
}
