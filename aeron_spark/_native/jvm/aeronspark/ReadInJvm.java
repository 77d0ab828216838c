package aeronspark;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.runtime.AbstractPartialFunction;

/** Puts an {@link AeronTable} where a plan reads the Python source "aeron". Nodes are copied, as their fields differ by version. */
final class ReadInJvm extends Rule<LogicalPlan> {
    /** Class of the tables of Python sources; in Spark 4.0 one without a name in the class before it. */
    private static final String PYTHON = "org.apache.spark.sql.execution.datasources.v2.python.Python";

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        return plan.resolveOperators(new AbstractPartialFunction<LogicalPlan, LogicalPlan>() {
            @Override
            public boolean isDefinedAt(LogicalPlan node) {
                return isOurs(tableOf(node));
            }

            @Override
            public LogicalPlan apply(LogicalPlan node) {
                Table table = tableOf(node);
                Object[] fields = new Object[node.productArity()];
                for (int at = 0; at < fields.length; at++) {
                    Object field = node.productElement(at);
                    fields[at] = field == table ? new AeronTable(table, node.isStreaming()) : field;
                }
                return node.makeCopy(fields);
            }
        });
    }

    private static Table tableOf(LogicalPlan node) {
        if (node instanceof DataSourceV2Relation) {
            return ((DataSourceV2Relation) node).table();
        }
        return node instanceof StreamingRelationV2 ? ((StreamingRelationV2) node).table() : null;
    }

    private static boolean isOurs(Table table) {
        return table != null && table.getClass().getName().startsWith(PYTHON) && "aeron".equalsIgnoreCase(table.name());
    }
}
