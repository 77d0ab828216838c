package peers;

import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.BusySpinIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.NoOpIdleStrategy;
import org.agrona.concurrent.SleepingIdleStrategy;
import org.agrona.concurrent.YieldingIdleStrategy;

import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/** {@code --name value} pairs of the command line; a name that no one asked for is an error. */
final class Options
{
    private final Map<String, String> values = new LinkedHashMap<>();
    private final Set<String> asked = new HashSet<>();

    Options(final String[] args)
    {
        for (int i = 0; i < args.length; i += 2)
        {
            if (!args[i].startsWith("--") || i + 1 == args.length)
            {
                throw new IllegalArgumentException("expected --name value, got: " + args[i]);
            }
            values.put(args[i].substring(2), args[i + 1]);
        }
    }

    String text(final String name, final String otherwise)
    {
        asked.add(name);
        return values.getOrDefault(name, otherwise);
    }

    String required(final String name)
    {
        final String value = text(name, null);
        if (value == null)
        {
            throw new IllegalArgumentException("missing --" + name);
        }
        return value;
    }

    long number(final String name, final long otherwise)
    {
        return Long.parseLong(text(name, Long.toString(otherwise)));
    }

    boolean has(final String name)
    {
        asked.add(name);
        return values.containsKey(name);
    }

    boolean flag(final String name)
    {
        return Boolean.parseBoolean(text(name, "false"));
    }

    /** Stock alias of an idle strategy. */
    IdleStrategy idle(final String otherwise)
    {
        final String name = text("idle", otherwise);
        return switch (name)
        {
            case "noop" -> NoOpIdleStrategy.INSTANCE;
            case "spin" -> BusySpinIdleStrategy.INSTANCE;
            case "yield" -> YieldingIdleStrategy.INSTANCE;
            case "sleep-ns" -> new SleepingIdleStrategy();
            case "backoff" -> new BackoffIdleStrategy();
            default -> throw new IllegalArgumentException(
                "unknown --idle " + name + ": give noop, spin, yield, sleep-ns or backoff");
        };
    }

    void refuseUnknown()
    {
        for (final String name : values.keySet())
        {
            if (!asked.contains(name))
            {
                throw new IllegalArgumentException("unknown option --" + name);
            }
        }
    }
}
