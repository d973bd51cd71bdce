import java.io.BufferedInputStream;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.Permission;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.SynchronousQueue;

/**
 * Runs the main methods of programs one after another in one JVM, each as if in a JVM of its own.
 *
 * <p>A request on standard input is a count and as many strings, each its length and its bytes: a
 * directory of classes (or nothing), the text for the program's standard input, the main class and
 * its arguments. Numbers are four bytes, big-endian. The answer on standard output is frames of a
 * kind, a length and bytes: `o` and `e` are what the program printed, `t` names a thread that it
 * left behind, `x` is the last one and has the exit code. Where the JVM ends without `x`, its own
 * exit code is the program's. The end of standard input ends the JVM.
 */
public final class ToolHost {
    /** Threads that libraries start once for good; with them no client of the last run is alive. */
    private static final Set<String> SHARED_THREADS =
        Set.of("ForkJoinPool.commonPool-worker", "metrics-meter-tick-thread");

    private static final long THREADS_END_MS = 500;
    private static final DataOutputStream answers =
        new DataOutputStream(new FileOutputStream(FileDescriptor.out));

    private ToolHost() {}

    public static void main(String[] none) throws Exception {
        SynchronousQueue<List<String>> requests = new SynchronousQueue<>();
        InputStream input = System.in;
        Thread reader = new Thread(() -> readRequests(input, requests), "requests");
        reader.setDaemon(true);
        reader.start();
        // Programs and libraries keep these three, so they stay and find the run by the thread.
        System.setIn(new RunInput());
        System.setOut(new PrintStream(new RunOutput('o'), true));
        System.setErr(new PrintStream(new RunOutput('e'), true));
        interceptExits();
        while (true) {
            perform(requests.take());
        }
    }

    private static void readRequests(InputStream input, SynchronousQueue<List<String>> requests) {
        try {
            DataInputStream data = new DataInputStream(new BufferedInputStream(input));
            while (true) {
                List<String> words = new ArrayList<>();
                for (int count = data.readInt(); count > 0; count--) {
                    byte[] bytes = data.readNBytes(data.readInt());
                    words.add(new String(bytes, StandardCharsets.UTF_8));
                }
                requests.put(words);
            }
        } catch (EOFException over) {
            System.exit(0);
        } catch (IOException | InterruptedException broken) {
            System.exit(70);
        }
    }

    private static void perform(List<String> request) throws Exception {
        Properties properties = (Properties) System.getProperties().clone();
        Thread.UncaughtExceptionHandler handler = Thread.getDefaultUncaughtExceptionHandler();
        Run run = new Run(request);
        run.perform();
        System.setProperties(properties);
        Thread.setDefaultUncaughtExceptionHandler(handler);
        // In a JVM of its own everything would end here, whatever other threads still print.
        run.over = true;
        for (Thread thread : run.threadsLeft()) {
            answer('t', thread.getName().getBytes(StandardCharsets.UTF_8));
        }
        byte[] code = {0, 0, 0, (byte) run.code};
        answer('x', code);
    }

    private static void answer(char kind, byte[] bytes) {
        answer(kind, bytes, 0, bytes.length);
    }

    private static void answer(char kind, byte[] bytes, int offset, int length) {
        synchronized (answers) {
            try {
                answers.writeByte(kind);
                answers.writeInt(length);
                answers.write(bytes, offset, length);
                answers.flush();
            } catch (IOException broken) {
                Runtime.getRuntime().halt(70);
            }
        }
    }

    /** By a security manager where Java has it still (17), else by what Kafka and ZooKeeper offer. */
    @SuppressWarnings("removal")
    private static void interceptExits() throws ReflectiveOperationException {
        try {
            System.setSecurityManager(new ExitGuard());
        } catch (UnsupportedOperationException gone) {
            String exit = "org.apache.kafka.common.utils.Exit";
            setProcedure(exit, "setExitProcedure", exit + "$Procedure");
            setProcedure(exit, "setHaltProcedure", exit + "$Procedure");
            setProcedure("org.apache.zookeeper.util.ServiceUtils", "setSystemExitProcedure",
                "java.util.function.Consumer");
        }
    }

    private static void setProcedure(String owner, String setter, String type)
            throws ReflectiveOperationException {
        try {
            Class<?> procedure = Class.forName(type);
            Object proxy = Proxy.newProxyInstance(ToolHost.class.getClassLoader(),
                new Class<?>[] {procedure}, (self, method, arguments) -> {
                    Run run = Run.current();
                    int code = (Integer) arguments[0];
                    if (run == null) {
                        Runtime.getRuntime().halt(code);
                    }
                    throw run.exit(code);
                });
            Class.forName(owner).getMethod(setter, procedure).invoke(null, proxy);
        } catch (ClassNotFoundException | NoSuchMethodException older) {
            // Then the JVM ends with the program, and its caller starts another one.
        }
    }

    @SuppressWarnings("removal")
    private static final class ExitGuard extends SecurityManager {
        @Override
        public void checkExit(int code) {
            Run run = Run.current();
            if (run != null) {
                throw run.exit(code);
            }
        }

        @Override
        public void checkPermission(Permission all) {}

        @Override
        public void checkPermission(Permission all, Object context) {}
    }

    /** Unwinds a thread that has ended its program. */
    private static final class Exited extends Error {
        Exited() {
            super("the program has ended", null, false, false);
        }
    }

    /** One program; its threads are those of the group. */
    private static final class Run extends ThreadGroup {
        private final List<String> request;
        private final InputStream input;
        /** What these print after their call of exit a JVM of their own would not have printed. */
        private final Set<Thread> mute = ConcurrentHashMap.newKeySet();
        private boolean exited;
        private int code;
        private volatile boolean over;

        Run(List<String> request) {
            super("run of " + request.get(2));
            this.request = request;
            this.input = new ByteArrayInputStream(request.get(1).getBytes(StandardCharsets.UTF_8));
        }

        static Run current() {
            ThreadGroup group = Thread.currentThread().getThreadGroup();
            while (group != null && !(group instanceof Run)) {
                group = group.getParent();
            }
            return (Run) group;
        }

        synchronized Exited exit(int status) {
            if (!exited) {
                exited = true;
                code = status;
                notifyAll();
            }
            mute.add(Thread.currentThread());
            return new Exited();
        }

        /** Waits for the end as Java does: exit is called or no thread but daemons is there. */
        void perform() throws Exception {
            Set<Thread> hooksBefore = new HashSet<>(shutdownHooks().keySet());
            Thread main = new Thread(this, this::callMain, "main");
            main.start();
            synchronized (this) {
                while (!exited && (main.isAlive() || threads().stream().anyMatch(it -> !it.isDaemon()))) {
                    wait(5);
                }
                exited = true;
            }
            List<Thread> hooks = new ArrayList<>(shutdownHooks().keySet());
            hooks.removeAll(hooksBefore);
            for (Thread hook : hooks) {
                Runtime.getRuntime().removeShutdownHook(hook);
                hook.start();
            }
            for (Thread hook : hooks) {
                hook.join();
            }
        }

        private void callMain() {
            try {
                ClassLoader loader = new ProgramLoader(request.get(0), request.get(2));
                Thread.currentThread().setContextClassLoader(loader);
                String[] arguments = request.subList(3, request.size()).toArray(String[]::new);
                var main = loader.loadClass(request.get(2)).getMethod("main", String[].class);
                main.invoke(null, (Object) arguments);
            } catch (InvocationTargetException thrown) {
                fail(thrown.getCause());
            } catch (IOException | ReflectiveOperationException | LinkageError broken) {
                fail(broken);
            }
        }

        private void fail(Throwable thrown) {
            if (!(thrown instanceof Exited)) {
                System.err.print("Exception in thread \"main\" ");
                thrown.printStackTrace();
                synchronized (this) {
                    code = exited ? code : 1;
                }
            }
        }

        @Override
        public void uncaughtException(Thread thread, Throwable thrown) {
            if (!(thrown instanceof Exited)) {
                super.uncaughtException(thread, thrown);
            }
        }

        private List<Thread> threads() {
            Thread[] found = new Thread[activeCount() + 64];
            List<Thread> own = new ArrayList<>();
            int count = enumerate(found);
            for (Thread thread : Arrays.copyOf(found, count)) {
                if (SHARED_THREADS.stream().noneMatch(thread.getName()::startsWith)) {
                    own.add(thread);
                }
            }
            return own;
        }

        /** The threads that are there still some time after the end. */
        List<Thread> threadsLeft() throws InterruptedException {
            threads().forEach(Run::closeOwner);
            long deadline = System.nanoTime() + THREADS_END_MS * 1_000_000;
            while (!threads().isEmpty() && System.nanoTime() < deadline) {
                Thread.sleep(2);
            }
            return threads();
        }

        /** Some of Kafka's tools leave their Admin to the end of the JVM; its thread is in its task. */
        private static void closeOwner(Thread thread) {
            try {
                Object owner = value(task(thread), "this$0");
                if (owner instanceof AutoCloseable) {
                    owner.getClass().getMethod("close", Duration.class).invoke(owner, Duration.ZERO);
                }
            } catch (ReflectiveOperationException | RuntimeException other) {
                // The thread is found again, and ends with the JVM.
            }
        }

        private static Object task(Thread thread) throws ReflectiveOperationException {
            Object before21 = value(thread, "target");
            return before21 != null ? before21 : value(value(thread, "holder"), "task");
        }

        private static Object value(Object object, String name) throws ReflectiveOperationException {
            for (Class<?> in = object == null ? null : object.getClass(); in != null; in = in.getSuperclass()) {
                for (Field field : in.getDeclaredFields()) {
                    if (field.getName().equals(name)) {
                        field.setAccessible(true);
                        return field.get(object);
                    }
                }
            }
            return null;
        }

        @SuppressWarnings("unchecked")
        private static Map<Thread, Thread> shutdownHooks() throws ReflectiveOperationException {
            Field hooks = Class.forName("java.lang.ApplicationShutdownHooks").getDeclaredField("hooks");
            hooks.setAccessible(true);
            return (Map<Thread, Thread>) hooks.get(null);
        }
    }

    /**
     * Loads the main class anew for each run, for what it keeps in static fields.
     *
     * <p>With it its package, whose classes may use what others do not see. Of the packages of
     * Kafka's Scala, which hold most of the broker, only the class itself, and none of ZooKeeper's,
     * whose shell keeps nothing. Everything else is loaded once.
     */
    private static final class ProgramLoader extends URLClassLoader {
        private static final String TOOLS = "org.apache.kafka.tools.";
        private final String main;

        ProgramLoader(String classes, String main) throws IOException {
            super(classes.isEmpty() ? new URL[0] : new URL[] {Path.of(classes).toUri().toURL()},
                ToolHost.class.getClassLoader());
            this.main = main;
        }

        private boolean isOwn(String name) {
            if (main.startsWith("org.apache.zookeeper.")) {
                return false;
            }
            if (main.startsWith("kafka.") || main.indexOf('.') < 0) {
                return name.equals(main) || name.startsWith(main + "$");
            }
            // A tool in a package below uses others.
            return name.startsWith(
                main.startsWith(TOOLS) ? TOOLS : main.substring(0, main.lastIndexOf('.') + 1));
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                if (!isOwn(name) || findLoadedClass(name) != null) {
                    return super.loadClass(name, resolve);
                }
                try (InputStream found = getResourceAsStream(name.replace('.', '/') + ".class")) {
                    if (found == null) {
                        throw new ClassNotFoundException(name);
                    }
                    byte[] bytes = found.readAllBytes();
                    return defineClass(name, bytes, 0, bytes.length);
                } catch (IOException broken) {
                    throw new ClassNotFoundException(name, broken);
                }
            }
        }
    }

    private static final class RunOutput extends OutputStream {
        private final char kind;

        RunOutput(char kind) {
            this.kind = kind;
        }

        @Override
        public void write(int one) {
            write(new byte[] {(byte) one}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) {
            Run run = Run.current();
            if (run != null && !run.over && !run.mute.contains(Thread.currentThread())) {
                answer(kind, bytes, offset, length);
            }
        }
    }

    private static final class RunInput extends InputStream {
        @Override
        public int read() throws IOException {
            Run run = Run.current();
            return run == null ? -1 : run.input.read();
        }

        @Override
        public int read(byte[] bytes, int offset, int length) throws IOException {
            Run run = Run.current();
            return run == null ? -1 : run.input.read(bytes, offset, length);
        }

        @Override
        public int available() throws IOException {
            Run run = Run.current();
            return run == null ? 0 : run.input.available();
        }
    }
}
