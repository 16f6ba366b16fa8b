import java.nio.charset.StandardCharsets;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.TimeZone;

/**
 * Read URL USER ZONE QUERY... prints each value as "column type base64" or "column type NULL". Each row ends with an
 * empty line, and each query with a line ";".
 */
public class Read {
    public static void main(String[] given) throws Exception {
        TimeZone.setDefault(TimeZone.getTimeZone(given[2]));  // the driver gives this time zone to the session
        try (var connection = DriverManager.getConnection(given[0], given[1], "")) {
            for (int query = 3; query < given.length; query++) {
                print(connection.createStatement().executeQuery(given[query]));
            }
        }
    }

    private static void print(ResultSet row) throws Exception {
        var columns = row.getMetaData();
        while (row.next()) {
            for (int i = 1; i <= columns.getColumnCount(); i++) {
                String type = columns.getColumnTypeName(i);
                Object value = type.equals("timestamptz") ? row.getObject(i, OffsetDateTime.class) : row.getObject(i);
                String printed = value == null ? "NULL"
                    : Base64.getEncoder().encodeToString(value.toString().getBytes(StandardCharsets.UTF_8));
                System.out.println(columns.getColumnName(i) + " " + type + " " + printed);
            }
            System.out.println();
        }
        System.out.println(";");
    }
}
