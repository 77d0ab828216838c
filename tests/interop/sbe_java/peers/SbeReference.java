package peers;

import mktdata.MDEntryTypeBook;
import mktdata.MDIncrementalRefreshBook46Decoder;
import mktdata.MDIncrementalRefreshBook46Decoder.NoMDEntriesDecoder;
import mktdata.MDIncrementalRefreshBook46Decoder.NoOrderIDEntriesDecoder;
import mktdata.MDUpdateAction;
import mktdata.OrderUpdateAction;
import mktdata.PRICENULL9Decoder;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import spot_stream.BestBidAskStreamEventDecoder;
import uk.co.real_logic.sbe.ir.Ir;
import uk.co.real_logic.sbe.ir.IrDecoder;
import uk.co.real_logic.sbe.ir.Token;
import uk.co.real_logic.sbe.otf.AbstractTokenListener;
import uk.co.real_logic.sbe.otf.OtfHeaderDecoder;
import uk.co.real_logic.sbe.otf.OtfMessageDecoder;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * The reference decoders over messages of a file, each behind its length (int32, little-endian), into primitive arrays:
 * {@code bbo | refresh | bbo-otf FILE SECONDS [IR]}. Which fields of an entry are null is a bit each, as Arrow's columns have it.
 * Prints one JSON object: messages a second of the thread's CPU time, and a sum of what was decoded.
 */
public final class SbeReference
{
    private static final int GROUP_ENTRIES_MAX = 64;

    private final UnsafeBuffer buffer;
    private final int[] offsets;

    private SbeReference(final Path file) throws IOException
    {
        final ByteBuffer content = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
        int count = 0;
        for (int at = 0; at < content.capacity(); at += 4 + content.getInt(at))
        {
            count++;
        }
        offsets = new int[count];
        for (int at = 0, i = 0; i < count; at += 4 + content.getInt(at))
        {
            offsets[i++] = at + 4;
        }
        buffer = new UnsafeBuffer(content);
    }

    private interface Round
    {
        long run();
    }

    public static void main(final String[] args) throws IOException
    {
        final SbeReference reference = new SbeReference(Path.of(args[1]));
        final double seconds = Double.parseDouble(args[2]);
        final Round round = switch (args[0])
        {
            case "bbo" -> reference.bbo();
            case "refresh" -> reference.refresh();
            case "bbo-otf" -> reference.bboOtf(args[3]);
            default -> throw new IllegalArgumentException(args[0]);
        };
        final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        measure(round, threads, seconds);
        final long started = threads.getCurrentThreadCpuTime();
        final long rounds = measure(round, threads, seconds);
        final double rate = rounds * (double)reference.offsets.length / ((threads.getCurrentThreadCpuTime() - started) / 1e9);
        System.out.println("{\"messages_per_second\": " + rate + ", \"sum\": " + round.run() + "}");
    }

    /** By the thread's time: on a busy machine the compiler of hot code is to have as much of it done as on a quiet one. */
    private static long measure(final Round round, final ThreadMXBean threads, final double seconds)
    {
        final long end = threads.getCurrentThreadCpuTime() + (long)(seconds * 1e9);
        long rounds = 0;
        do
        {
            round.run();
            rounds++;
        }
        while (threads.getCurrentThreadCpuTime() < end);
        return rounds;
    }

    private Round bbo()
    {
        final int count = offsets.length;
        final long[] times = new long[count], ids = new long[count], bidPrices = new long[count], bidSizes = new long[count];
        final long[] askPrices = new long[count], askSizes = new long[count];
        final byte[] priceExponents = new byte[count], sizeExponents = new byte[count], symbols = new byte[count * 16];
        final int[] symbolOffsets = new int[count + 1];
        final spot_stream.MessageHeaderDecoder header = new spot_stream.MessageHeaderDecoder();
        final BestBidAskStreamEventDecoder decoder = new BestBidAskStreamEventDecoder();
        return () ->
        {
            int symbolsAt = 0;
            for (int i = 0; i < count; i++)
            {
                decoder.wrapAndApplyHeader(buffer, offsets[i], header);
                times[i] = decoder.eventTime();
                ids[i] = decoder.bookUpdateId();
                priceExponents[i] = decoder.priceExponent();
                sizeExponents[i] = decoder.qtyExponent();
                bidPrices[i] = decoder.bidPrice();
                bidSizes[i] = decoder.bidQty();
                askPrices[i] = decoder.askPrice();
                askSizes[i] = decoder.askQty();
                symbolsAt += decoder.getSymbol(symbols, symbolsAt, 16);
                symbolOffsets[i + 1] = symbolsAt;
            }
            return times[count - 1] + bidPrices[count / 2] + askSizes[count - 1] + symbolsAt;
        };
    }

    private Round refresh()
    {
        final int count = offsets.length;
        final int capacity = count * GROUP_ENTRIES_MAX;
        final long[] times = new long[count], prices = new long[capacity], sequences = new long[capacity];
        final byte[] indicators = new byte[count], actions = new byte[capacity], types = new byte[capacity];
        final int[] sizes = new int[capacity], securities = new int[capacity], orders = new int[capacity];
        final int[] entryOffsets = new int[count + 1], orderOffsets = new int[count + 1];
        final short[] levels = new short[capacity];
        final long[] orderIds = new long[capacity], priorities = new long[capacity];
        final int[] quantities = new int[capacity];
        final short[] references = new short[capacity];
        final byte[] updates = new byte[capacity];
        final byte[] nulls = new byte[capacity], orderNulls = new byte[capacity];
        final mktdata.MessageHeaderDecoder header = new mktdata.MessageHeaderDecoder();
        final MDIncrementalRefreshBook46Decoder decoder = new MDIncrementalRefreshBook46Decoder();
        return () ->
        {
            int k = 0;
            int m = 0;
            for (int i = 0; i < count; i++)
            {
                decoder.wrapAndApplyHeader(buffer, offsets[i], header);
                times[i] = decoder.transactTime();
                indicators[i] = (byte)decoder.matchEventIndicator().getRaw();
                for (final NoMDEntriesDecoder entry : decoder.noMDEntries())
                {
                    final long price = entry.mDEntryPx().mantissa();
                    final int size = entry.mDEntrySize();
                    final int order = entry.numberOfOrders();
                    final byte action = (byte)entry.mDUpdateActionRaw();
                    final byte type = entry.mDEntryTypeRaw();
                    prices[k] = price;
                    sizes[k] = size;
                    securities[k] = entry.securityID();
                    sequences[k] = entry.rptSeq();
                    orders[k] = order;
                    levels[k] = entry.mDPriceLevel();
                    actions[k] = action;
                    types[k] = type;
                    nulls[k] = (byte)((price == PRICENULL9Decoder.mantissaNullValue() ? 1 : 0) |
                        (size == NoMDEntriesDecoder.mDEntrySizeNullValue() ? 2 : 0) |
                        (order == NoMDEntriesDecoder.numberOfOrdersNullValue() ? 4 : 0) |
                        (action == (byte)MDUpdateAction.NULL_VAL.value() ? 8 : 0) |
                        (type == MDEntryTypeBook.NULL_VAL.value() ? 16 : 0));
                    k++;
                }
                entryOffsets[i + 1] = k;
                for (final NoOrderIDEntriesDecoder entry : decoder.noOrderIDEntries())
                {
                    final long priority = entry.mDOrderPriority();
                    final int quantity = entry.mDDisplayQty();
                    final short reference = entry.referenceID();
                    final byte update = (byte)entry.orderUpdateActionRaw();
                    orderIds[m] = entry.orderID();
                    priorities[m] = priority;
                    quantities[m] = quantity;
                    references[m] = reference;
                    updates[m] = update;
                    orderNulls[m] = (byte)((priority == NoOrderIDEntriesDecoder.mDOrderPriorityNullValue() ? 1 : 0) |
                        (quantity == NoOrderIDEntriesDecoder.mDDisplayQtyNullValue() ? 2 : 0) |
                        (reference == NoOrderIDEntriesDecoder.referenceIDNullValue() ? 4 : 0) |
                        (update == (byte)OrderUpdateAction.NULL_VAL.value() ? 8 : 0));
                    m++;
                }
                orderOffsets[i + 1] = m;
            }
            return times[count - 1] + prices[k - 1] + sizes[k / 2] + k + m;
        };
    }

    private Round bboOtf(final String irFile) throws IOException
    {
        final Ir ir;
        try (IrDecoder decoder = new IrDecoder(irFile))
        {
            ir = decoder.decode();
        }
        final OtfHeaderDecoder header = new OtfHeaderDecoder(ir.headerStructure());
        final int count = offsets.length;
        final Columns columns = new Columns(count);
        return () ->
        {
            columns.clear();
            for (int i = 0; i < count; i++)
            {
                final int at = offsets[i];
                final List<Token> tokens = ir.getMessage(header.getTemplateId(buffer, at));
                OtfMessageDecoder.decode(buffer, at + header.encodedLength(), header.getSchemaVersion(buffer, at),
                    header.getBlockLength(buffer, at), tokens, columns);
                columns.next();
            }
            return columns.numbers[0][count - 1] + columns.symbolsAt;
        };
    }

    /** What the on-the-fly decoder tells, into arrays: a number a field, by the order of the fields. */
    private static final class Columns extends AbstractTokenListener
    {
        private final long[][] numbers;
        private final byte[] symbols;
        private int symbolsAt;
        private int row;
        private int field;

        private Columns(final int count)
        {
            numbers = new long[8][count];
            symbols = new byte[count * 16];
        }

        private void clear()
        {
            row = 0;
            symbolsAt = 0;
            field = 0;
        }

        private void next()
        {
            row++;
            field = 0;
        }

        public void onEncoding(
            final Token fieldToken, final DirectBuffer buffer, final int index, final Token typeToken, final int actingVersion)
        {
            final long value = switch (typeToken.encoding().primitiveType())
            {
                case INT8 -> buffer.getByte(index);
                case INT64 -> buffer.getLong(index, typeToken.encoding().byteOrder());
                default -> throw new IllegalStateException(typeToken.toString());
            };
            numbers[field++][row] = value;
        }

        public void onVarData(
            final Token fieldToken, final DirectBuffer buffer, final int index, final int length, final Token typeToken)
        {
            buffer.getBytes(index, symbols, symbolsAt, length);
            symbolsAt += length;
        }
    }
}
