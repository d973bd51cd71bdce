import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.Executors;

/** Does in a host of programs (ToolHost) what programs do, by the name of the behaviour. */
public final class Behaving {
    private static int runs = 0;

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "echo" -> echo();
            case "arguments" -> System.out.println(String.join("|", arguments));
            case "exit" -> exit(Integer.parseInt(arguments[1]));
            case "throw" -> throw new IllegalStateException("on purpose");
            case "hang" -> {
                System.out.println("about to hang");
                Thread.sleep(Long.MAX_VALUE);
            }
            case "state" -> {
                System.out.println(++runs + " " + System.getProperty("behaving", "unset"));
                System.setProperty("behaving", "set");
            }
            case "worker" -> new Thread(Behaving::work).start();
            case "chatter" -> {
                Thread thread = new Thread(Behaving::chatter, "chatter");
                thread.setDaemon(true);
                thread.start();
            }
            case "forget" -> new Client();
            case "pool" -> Executors.newCachedThreadPool(Behaving::daemon).submit(Behaving::chatter);
            case "die" -> {
                System.out.println("about to die");
                String pid = String.valueOf(ProcessHandle.current().pid());
                new ProcessBuilder("kill", "-KILL", pid).start().waitFor();
                Thread.sleep(Long.MAX_VALUE);
            }
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    /** Has a thread until it is closed, as Kafka's Admin. */
    public static final class Client implements AutoCloseable {
        private volatile boolean closed;

        Client() {
            Thread thread = new Thread(new Task(), "client");
            thread.setDaemon(true);
            thread.start();
        }

        @Override
        public void close() {
            close(Duration.ofDays(1));
        }

        public void close(Duration patience) {
            closed = true;
        }

        private final class Task implements Runnable {
            @Override
            public void run() {
                while (!closed) {
                    Thread.onSpinWait();
                }
            }
        }
    }

    private static void echo() throws Exception {
        InputStreamReader input = new InputStreamReader(System.in, StandardCharsets.UTF_8);
        BufferedReader lines = new BufferedReader(input);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println("out " + line);
            System.err.println("err " + line);
        }
    }

    private static void exit(int code) {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
        try {
            System.out.println("before");
            System.exit(code);
        } catch (Throwable unwinding) {
            System.exit(99);
        } finally {
            System.out.println("after");
        }
    }

    private static Thread daemon(Runnable task) {
        Thread thread = new Thread(task, "pool");
        thread.setDaemon(true);
        return thread;
    }

    private static void work() {
        try {
            Thread.sleep(200);
        } catch (InterruptedException none) {
            System.exit(98);
        }
        System.out.println("worked");
    }

    private static void chatter() {
        while (true) {
            System.out.println("chatter");
            Thread.onSpinWait();
        }
    }
}
