package aeronspark;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.types.StructType;

/** What a stream does in Real-Time Mode: Python plans its batches and makes their offsets (planning/real_time.py). */
final class RealTime {
    private final MicroBatchStream python;
    private Offset start;

    RealTime(MicroBatchStream python) {
        this.python = python;
    }

    /** Spark of this version has the mode. */
    static boolean isThere() {
        try {
            Class.forName("org.apache.spark.sql.connector.read.streaming.SupportsRealTimeMode");
            return true;
        } catch (ClassNotFoundException error) {
            return false;
        }
    }

    InputPartition[] plan(Offset from) {
        start = from;
        ObjectNode request = new ObjectMapper().createObjectNode();
        // All tasks run as long as the batch does.
        request.putObject("realTime").put("tasks", SparkContext.getOrCreate().defaultParallelism());
        Planned[] planned = ask(request);
        Planned.areForJvm(planned, new StructType());
        return planned;
    }

    Offset merged(PartitionOffset[] offsets) {
        ObjectNode request = new ObjectMapper().createObjectNode();
        ObjectNode reached = request.putObject("realTime").putObject("reached");
        for (PartitionOffset offset : offsets) {
            ((Reached) offset).addTo(reached);
        }
        return python.deserializeOffset(ask(request)[0].job().get("offset").asText());
    }

    private Planned[] ask(ObjectNode request) {
        return Planned.asked(python, start, request);
    }

    /** How far the task of one partition has read. */
    record Reached(long[] ids, long[] positions) implements PartitionOffset {
        void addTo(ObjectNode reached) {
            for (int at = 0; at < ids.length; at++) {
                reached.put(Long.toString(ids[at]), positions[at]);
            }
        }
    }
}
