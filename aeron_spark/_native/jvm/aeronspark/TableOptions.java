package aeronspark;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.catalog.CatalogUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** The options with which a table of CREATE TABLE ... USING aeron was made: Spark gives a source in Python none of them. */
final class TableOptions {
    private TableOptions() {}

    /** Those of the table of this name in the session's catalog, under the `given` ones of one query. */
    static CaseInsensitiveStringMap of(SparkSession session, Identifier name, CaseInsensitiveStringMap given) {
        String[] namespace = name.namespace();
        Option<String> database = namespace.length == 0 ? Option.empty() : Option.apply(namespace[namespace.length - 1]);
        CatalogTable table;
        try {
            table = session.sessionState().catalog().getTableMetadata(new TableIdentifier(name.name(), database));
        } catch (AnalysisException gone) {
            throw new IllegalStateException("the table " + name + " was dropped while a query of it began", gone);
        }
        CatalogStorageFormat storage = table.storage();
        Map<String, String> options = new HashMap<>(CollectionConverters.asJava(storage.properties()));
        // A table without a folder of its own has one of Spark's, in which nothing is.
        if (CatalogTableType.EXTERNAL().equals(table.tableType()) && storage.locationUri().isDefined()) {
            options.put("path", CatalogUtils.URIToString(storage.locationUri().get()));
        }
        given.asCaseSensitiveMap().forEach((key, value) -> {
            options.keySet().removeIf(key::equalsIgnoreCase);
            options.put(key, value);
        });
        return new CaseInsensitiveStringMap(options);
    }
}
