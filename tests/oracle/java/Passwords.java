import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.security.PasswordEncoder;

/** Encodes or decodes a password as Apache's broker does before it goes to ZooKeeper. */
public final class Passwords {
    public static void main(String[] args) throws Exception {
        PasswordEncoder encoder = PasswordEncoder.encrypting(
            new Password(args[1]), args[2].isEmpty() ? null : args[2],
            "AES/CBC/PKCS5Padding", Integer.parseInt(args[3]), 4096);
        String text = args[4];
        boolean encodes = args[0].equals("encode");
        System.out.print(encodes ? encoder.encode(new Password(text)) : encoder.decode(text).value());
    }
}
