package aeronspark;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.runtime.AbstractPartialFunction;

/**
 * Puts an {@link AeronTable} where a plan reads or writes the Python source "aeron", and gives it the options of a table of the
 * catalog. Nodes are copied, as their fields differ by version.
 */
final class ReadInJvm extends Rule<LogicalPlan> {
    /** Class of the tables of Python sources; in Spark 4.0 one without a name in the class before it. */
    private static final String PYTHON = "org.apache.spark.sql.execution.datasources.v2.python.Python";

    private final SparkSession session;

    ReadInJvm(SparkSession session) {
        this.session = session;
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        return plan.resolveOperators(new AbstractPartialFunction<LogicalPlan, LogicalPlan>() {
            @Override
            public boolean isDefinedAt(LogicalPlan node) {
                return isStreamingWrite(node) ? fieldsOf(node) != null : isOurs(tableOf(relationOf(node)));
            }

            @Override
            public LogicalPlan apply(LogicalPlan node) {
                if (node instanceof V2WriteCommand) {
                    return (LogicalPlan) ((V2WriteCommand) node).withNewTable((DataSourceV2Relation) of(relationOf(node)));
                }
                return isStreamingWrite(node) ? node.makeCopy(fieldsOf(node)) : of(node);
            }
        });
    }

    /** Of a micro-batch; its class has moved, and fields of it have changed, from version to version. */
    private static boolean isStreamingWrite(LogicalPlan node) {
        return node.getClass().getSimpleName().equals("WriteToMicroBatchDataSource");
    }

    /** The fields of a streaming write with our table in them; null where the table is another one. */
    private Object[] fieldsOf(LogicalPlan write) {
        Object[] fields = new Object[write.productArity()];
        boolean isOurs = false;
        for (int at = 0; at < fields.length; at++) {
            Object field = write.productElement(at);
            if (field instanceof Table && isOurs((Table) field)) {
                field = new AeronTable((Table) field, true);
                isOurs = true;
            } else if (field instanceof DataSourceV2Relation && isOurs(tableOf(field))) {
                field = of(field);
                isOurs = true;
            }
            fields[at] = field;
        }
        return isOurs ? fields : null;
    }

    /** The node that names a table to read or write. */
    private static Object relationOf(LogicalPlan node) {
        return node instanceof V2WriteCommand ? ((V2WriteCommand) node).table() : node;
    }

    private static Table tableOf(Object relation) {
        if (relation instanceof DataSourceV2Relation) {
            return ((DataSourceV2Relation) relation).table();
        }
        return relation instanceof StreamingRelationV2 ? ((StreamingRelationV2) relation).table() : null;
    }

    private static boolean isOurs(Table table) {
        return table != null && table.getClass().getName().startsWith(PYTHON) && "aeron".equalsIgnoreCase(table.name());
    }

    private static Option<Identifier> nameOf(LogicalPlan relation) {
        return relation instanceof DataSourceV2Relation ? ((DataSourceV2Relation) relation).identifier()
            : ((StreamingRelationV2) relation).identifier();
    }

    private LogicalPlan of(Object found) {
        LogicalPlan relation = (LogicalPlan) found;
        Table table = tableOf(relation);
        Option<Identifier> name = nameOf(relation);
        Object[] fields = new Object[relation.productArity()];
        for (int at = 0; at < fields.length; at++) {
            Object field = relation.productElement(at);
            if (field == table) {
                field = new AeronTable(table, relation.isStreaming());
            } else if (field instanceof CaseInsensitiveStringMap && name.isDefined()) {
                field = TableOptions.of(session, name.get(), (CaseInsensitiveStringMap) field);
            }
            fields[at] = field;
        }
        return relation.makeCopy(fields);
    }
}
