import java.util.Scanner;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;

/**
 * Records amounts as Kafka does: reads the windows, their milliseconds and the limit, then times with amounts.
 * Prints for each the rate, the window it is measured over, and the tokens of a bucket.
 */
public final class Rates {
    public static void main(String[] arguments) {
        Scanner input = new Scanner(System.in);
        int samples = input.nextInt();
        long windowMs = input.nextLong();
        double limit = input.nextDouble();
        MetricConfig config = new MetricConfig()
            .samples(samples)
            .timeWindow(windowMs, TimeUnit.MILLISECONDS)
            .quota(new Quota(limit, true));
        Rate rate = new Rate();
        TokenBucket bucket = new TokenBucket();
        StringBuilder printed = new StringBuilder();
        while (input.hasNextLong()) {
            long now = input.nextLong();
            double amount = input.nextDouble();
            rate.record(config, amount, now);
            bucket.record(config, amount, now);
            double measured = rate.measure(config, now);
            printed.append(measured).append(' ').append(rate.windowSize(config, now)).append(' ')
                .append(bucket.measure(config, now)).append('\n');
        }
        System.out.print(printed);
    }
}
