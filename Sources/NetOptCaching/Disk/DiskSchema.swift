import NetOptSQLite

/// The tables of a disk cache.
enum DiskSchema {
  /// `PRAGMA user_version`. The store replaces a database with an older version, and leaves one with a newer
  /// version alone. The version also rises when other request fields tell users apart
  /// (`CredentialFields.usual`, `SecretNames`), or when other response fields are stored.
  static let version: Int64 = 4

  static let pageSize = 8192

  /// Settings to make before the first table is created. Later they would write to the database without
  /// effect.
  static let layout = "PRAGMA page_size = \(pageSize); PRAGMA auto_vacuum = INCREMENTAL"

  /// Settings to make for each connection.
  static let settings = """
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    PRAGMA journal_size_limit = 16777216;
    PRAGMA cache_size = -4096;
    PRAGMA trusted_schema = OFF
    """

  /// The statements that create the tables. The store replaces a database with any other definition. A change
  /// of one character here needs a new `version`.
  ///
  /// The body is the last column, so that SQLite reads all other columns without it. The triggers maintain
  /// the totals of all entries for all processes; otherwise SQLite would have to sum them up. `clock` is the
  /// GDSF clock.
  static let definitions = [
    """
    CREATE TABLE entries (
      id INTEGER PRIMARY KEY, digest BLOB NOT NULL, owner BLOB NOT NULL, text BLOB NOT NULL, selectors BLOB NOT NULL,
      received INTEGER NOT NULL, size INTEGER NOT NULL, cost INTEGER NOT NULL, hits INTEGER NOT NULL,
      priority REAL NOT NULL, length INTEGER NOT NULL, file TEXT, checksum BLOB NOT NULL, head BLOB NOT NULL,
      body BLOB)
    """,
    "CREATE INDEX entries_key ON entries (digest, owner)",
    "CREATE INDEX entries_priority ON entries (priority)",
    "CREATE INDEX entries_received ON entries (received)",
    "CREATE INDEX entries_file ON entries (file) WHERE file IS NOT NULL",
    """
    CREATE TABLE totals (
      one INTEGER PRIMARY KEY CHECK (one = 1), entries INTEGER NOT NULL, bytes INTEGER NOT NULL, clock REAL NOT NULL)
    """,
    """
    CREATE TRIGGER entries_added AFTER INSERT ON entries
      BEGIN UPDATE totals SET entries = entries + 1, bytes = bytes + new.size; END
    """,
    """
    CREATE TRIGGER entries_removed AFTER DELETE ON entries
      BEGIN UPDATE totals SET entries = entries - 1, bytes = bytes - old.size; END
    """,
    """
    CREATE TABLE evictions (
      id INTEGER PRIMARY KEY, digest BLOB NOT NULL, owner BLOB NOT NULL, text BLOB NOT NULL, moment INTEGER NOT NULL,
      reason TEXT NOT NULL)
    """,
    "CREATE INDEX evictions_key ON evictions (digest, owner)",
  ]

  /// Creates the tables.
  static let tables =
    definitions.joined(separator: ";\n")
    + ";\nINSERT INTO totals VALUES (1, 0, 0, 0); PRAGMA user_version = \(version)"

  /// The bytes of disk space that an entry takes. In the database, data that does not fit into a page goes to
  /// overflow pages (https://www.sqlite.org/fileformat2.html, 1.6). A file takes whole blocks.
  static func footprint(row: Int, file: Int?) -> Int {
    let usable = pageSize - 4
    let payload = row + 128
    let most = pageSize - 35
    var bytes = payload
    if payload > most {
      let least = (pageSize - 12) * 32 / 255 - 23
      let local = least + (payload - least) % usable
      let kept = local <= most ? local : least
      bytes = kept + (payload - kept + usable - 1) / usable * pageSize
    }
    // The indices.
    return bytes + 128 + (file.map { ($0 + 4095) & ~4095 } ?? 0)
  }
}
