import NetOptSQLite

/// The tables of a disk cache.
enum DiskSchema {
  /// The version of the tables and of their content, which the database keeps as `PRAGMA user_version`. The
  /// store replaces a database with an older version. It does not use or change a database with a newer
  /// version. Increase the version after a change of the tables, of the stored response fields, or of the
  /// request fields that distinguish users (`CredentialFields.usual`, `SecretNames`).
  static let version: Int64 = 5

  /// The size of a page of the database, in bytes.
  static let pageSize = 8192

  /// The settings of the database file. They take effect only before the first table is created.
  static let layout = "PRAGMA page_size = \(pageSize); PRAGMA auto_vacuum = INCREMENTAL"

  /// The settings that each connection makes when it opens the database, after `Database.useLog`.
  static let settings = """
    PRAGMA synchronous = NORMAL;
    PRAGMA journal_size_limit = 16777216;
    PRAGMA cache_size = -4096;
    PRAGMA trusted_schema = OFF
    """

  /// The statements that create the tables. The store replaces a database whose definitions differ from these
  /// texts. So a change of one character needs a new `version`.
  ///
  /// The columns of `entries`:
  ///
  /// - `digest`, `owner` and `text` are the cache key: the MD5 of the text, the partition
  ///   (`EntryCoding.owner`), and `CacheKey.text`.
  /// - `selectors`, `checksum` and `head` have the formats of `EntryCoding`.
  /// - `resource` is `CacheEntry.resource`; it is null for an entry without this number.
  /// - `received` is in milliseconds since 1970.
  /// - `size` is the `footprint` in bytes. `cost` is the duration of the fetch in microseconds. `priority` is
  ///   the priority of GDSF (`DiskConnection.makeRoom`).
  /// - `length` is the size of the body in bytes. `file` is the name of the file with the body; it is null
  ///   when `body` contains the body. `body` is the last column, so that SQLite can read the other columns
  ///   without it.
  ///
  /// `totals` has one row: the number of entries, the sum of their sizes, and the clock of GDSF. The triggers
  /// update the number and the sum, so that no process has to read all entries to compute them. `moment` of
  /// `evictions` is the time of the eviction in milliseconds since 1970, `reason` is an `EvictionReason`.
  static let definitions = [
    """
    CREATE TABLE entries (
      id INTEGER PRIMARY KEY, digest BLOB NOT NULL, owner BLOB NOT NULL, text BLOB NOT NULL, selectors BLOB NOT NULL,
      resource INTEGER, received INTEGER NOT NULL, size INTEGER NOT NULL, cost INTEGER NOT NULL, hits INTEGER NOT NULL,
      priority REAL NOT NULL, length INTEGER NOT NULL, file TEXT, checksum BLOB NOT NULL, head BLOB NOT NULL,
      body BLOB)
    """,
    "CREATE INDEX entries_key ON entries (digest, owner)",
    "CREATE INDEX entries_priority ON entries (priority)",
    "CREATE INDEX entries_received ON entries (received)",
    "CREATE INDEX entries_resource ON entries (resource) WHERE resource IS NOT NULL",
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

  /// The statements that create the tables, insert the row of `totals` and set the version.
  static let tables =
    definitions.joined(separator: ";\n")
    + ";\nINSERT INTO totals VALUES (1, 0, 0, 0); PRAGMA user_version = \(version)"

  /// Estimates the disk space that an entry takes, in bytes. In the database, data that does not fit into a
  /// page goes to overflow pages (https://www.sqlite.org/fileformat2.html, 1.6). A file takes whole blocks of
  /// 4 KiB.
  ///
  /// - Parameters:
  ///   - row: the total size of the columns `owner`, `text`, `selectors` and `head`, in bytes, and of `body`
  ///     if the body is in the row.
  ///   - file: the size of the body in bytes, if the body is in a file.
  static func footprint(row: Int, file: Int?) -> Int {
    let usable = pageSize - 4
    // The 128 bytes are an estimate for the other columns of the row and its header.
    let payload = row + 128
    let most = pageSize - 35
    var bytes = payload
    if payload > most {
      let least = (pageSize - 12) * 32 / 255 - 23
      let local = least + (payload - least) % usable
      let kept = local <= most ? local : least
      bytes = kept + (payload - kept + usable - 1) / usable * pageSize
    }
    // These 128 bytes are an estimate for the rows of the entry in the indices.
    return bytes + 128 + (file.map { ($0 + 4095) & ~4095 } ?? 0)
  }
}
