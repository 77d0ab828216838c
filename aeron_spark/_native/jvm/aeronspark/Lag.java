package aeronspark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;

/** How far a stream is behind, for its progress. Python computes it, as for its listeners (planning/lag.py). */
final class Lag {
    private final MicroBatchStream python;
    private Offset newest;
    private String askedFor = "";
    private Map<String, String> answer = Map.of();

    Lag(MicroBatchStream python) {
        this.python = python;
    }

    /** How far the recordings go, as Python has just said; null where it does not know. */
    Offset upTo(Offset newest) {
        this.newest = newest;
        return newest;
    }

    /** Nothing where it is not known: of a batch that a restarted query runs again, Spark asks for no newest offset. */
    Map<String, String> of(Offset consumed) {
        if (consumed == null || newest == null) {
            return Map.of();
        }
        // An idle query asks a hundred times a second.
        String asked = consumed.json() + newest.json();
        if (!asked.equals(askedFor)) {
            answer = ask(consumed);
            askedFor = asked;
        }
        return answer;
    }

    private Map<String, String> ask(Offset consumed) {
        ObjectNode request = new ObjectMapper().createObjectNode();
        request.set("lagTo", Planned.parse(newest.json()));
        JsonNode told = Planned.asked(python, consumed, request)[0].job().get("metrics");
        Map<String, String> metrics = new HashMap<>();
        told.fieldNames().forEachRemaining(name -> metrics.put(name, told.get(name).asText()));
        return metrics;
    }
}
