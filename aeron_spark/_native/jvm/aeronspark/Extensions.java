package aeronspark;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.SparkSessionExtensionsProvider;
import org.apache.spark.sql.classic.SparkSession;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Found by Spark as a service of this jar, in each session: adds the rule that gives reads and writes of "aeron" to the JVM's engine. */
public final class Extensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit>
    implements SparkSessionExtensionsProvider {
    @Override
    public BoxedUnit apply(SparkSessionExtensions extensions) {
        extensions.injectPostHocResolutionRule(session -> new ReadInJvm((SparkSession) session));
        return BoxedUnit.UNIT;
    }
}
