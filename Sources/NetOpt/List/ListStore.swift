import FoundationEssentials
import Glibc
package import NetOptCore
import NetOptCrypto
package import NetOptRouting

/// A directory with the last good copies of lists and the records of their refreshes. Processes may share the
/// directory.
///
/// A copy is one file with list and signature, so that list and signature always match. The store replaces
/// files with `FileBytes.replace` under a lock (flock(2)). When a process is killed during a replacement, the
/// file is either the complete old copy or the complete new copy. When two processes save a copy, the newer
/// list remains. Every method blocks until its work on the disk has ended.
package struct ListStore: Sendable {
  /// A list as it was fetched. The client verifies a copy again each time it loads one.
  package struct Copy: Hashable, Sendable {
    /// The URL that the list was fetched from. It may differ from the refresh URL of the configured list,
    /// because a fetched list may name another URL for newer issues.
    package var source: String
    /// The entity tag of the response with the list (RFC 9110, section 8.8.3); `nil` when there was none.
    package var tag: String?
    /// The bytes of the list.
    package var list: [UInt8]
    /// The bytes of the signature; `nil` when none was fetched.
    package var signature: [UInt8]?

    /// Makes a copy.
    package init(source: String, tag: String?, list: [UInt8], signature: [UInt8]?) {
      self.source = source
      self.tag = tag
      self.list = list
      self.signature = signature
    }
  }

  private let directory: String
  /// The rules of the reader as text: `allowPrivateAddresses` and the trusted keys. The names of the files
  /// depend on this text.
  private let rules: String
  /// How long to wait for another process that writes to the directory.
  private let lockTimeout: Duration
  /// How long to wait at most for the lock before saving a record; `lockTimeout` if that is shorter.
  private static let recordLockTimeout = Duration.milliseconds(50)
  /// The valid dates in a record, in seconds since 1970: up to the end of the year 9999. The store neither
  /// reads nor writes other dates.
  private static let dates: ClosedRange<Int64> = 0...253_402_300_799

  /// Makes a store. The store creates the directory when it first writes a file; only this user can access
  /// it.
  ///
  /// - Parameters:
  ///   - reader: the reader that checks the copies. Readers with different rules do not share copies, because
  ///     one reader may reject a list that another reader accepts, for example when their trusted keys
  ///     differ.
  ///   - lockTimeout: how long to wait for another process that writes to the directory. Default: 5 s.
  package init(directory: String, for reader: ListReader, lockTimeout: Duration = FileLock.defaultTimeout) {
    self.directory = directory
    self.lockTimeout = lockTimeout
    rules = (["\(reader.allowPrivateAddresses)"] + reader.trustedKeys.map(\.description).sorted())
      .joined(separator: "\n")
  }

  /// The directory for copies by the XDG base directory specification: `netopt/lists` in `$XDG_STATE_HOME`,
  /// by default in `~/.local/state`. `nil` when neither `XDG_STATE_HOME` nor `HOME` has an absolute path.
  package static func directory(in environment: [String: String]) -> String? {
    StateDirectory.path(environment).map { "\($0)/lists" }
  }

  // MARK: Copies

  /// Reads the last good copy for a configured list.
  ///
  /// - Parameter url: the refresh URL of the configured list.
  /// - Returns: `nil` when there is no copy.
  /// - Throws: `unreadableFile`; `invalidList` when the copy is damaged.
  package func copy(of url: HTTPURL) throws(NetOptError) -> Copy? {
    let path = try file(url, "list")
    guard let bytes = try Self.read(path, upTo: EndpointList.maximumBytes + (64 << 10)) else { return nil }
    guard let copy = Copy(bytes) else {
      throw NetOptError(
        .invalidList, phase: .list,
        "\(path): the last good copy of \(url.shown) is damaged; it will be fetched again")
    }
    return copy
  }

  /// Saves a copy.
  ///
  /// - Parameters:
  ///   - url: the refresh URL of the configured list.
  ///   - isBetter: called with the copy that is on the disk, if there is one that is not damaged. When it
  ///     returns true, that copy stays and `copy` is not saved.
  /// - Throws: `unwritableFile`.
  package func keep(
    _ copy: Copy, of url: HTTPURL, unless isBetter: (Copy) -> Bool
  ) throws(NetOptError) {
    let path = try file(url, "list")
    try withLock(url, within: lockTimeout) { () throws(NetOptError) in
      if let present = try? self.copy(of: url), isBetter(present) { return }
      FileBytes.removeDrafts(of: path)
      try FileBytes.replace(path, with: copy.bytes, mode: 0o600, as: "the copy of the IP list", in: .list)
    }
  }

  // MARK: Records

  /// Reads the record of the refreshes of a list. Returns an empty record when the file is missing or cannot
  /// be read.
  ///
  /// - Parameter url: the refresh URL of the configured list.
  package func record(of url: HTTPURL) -> RefreshSchedule.Record {
    guard let path = try? file(url, "record"), let bytes = try? Self.read(path, upTo: 4096),
      let (fields, _) = Header.read(bytes, "netopt-record 1")
    else { return RefreshSchedule.Record() }
    func date(_ name: String) -> Date? {
      let seconds = fields[name].flatMap { Int64($0) }.flatMap { Self.dates.contains($0) ? $0 : nil }
      return seconds.map { Date(timeIntervalSince1970: Double($0)) }
    }
    let failures = min(max(fields["failures"].flatMap { Int($0) } ?? 0, 0), 1000)
    return RefreshSchedule.Record(
      checked: date("checked"), attempted: date("attempted"), failures: failures,
      notBefore: date("not-before"))
  }

  /// Saves the record of the refreshes of a list. Waits at most 50 ms for another process that writes to the
  /// directory. A longer wait is not worth it: without the record, the next process only makes one attempt
  /// more.
  ///
  /// - Parameter url: the refresh URL of the configured list.
  /// - Throws: `unwritableFile`.
  package func keep(_ record: RefreshSchedule.Record, of url: HTTPURL) throws(NetOptError) {
    var fields: [(String, String)] = [("failures", String(record.failures))]
    let dates = [
      ("checked", record.checked), ("attempted", record.attempted), ("not-before", record.notBefore),
    ]
    for (name, date) in dates {
      let seconds = date.flatMap { Int64(exactly: $0.timeIntervalSince1970.rounded(.down)) }
      if let seconds, Self.dates.contains(seconds) { fields.append((name, String(seconds))) }
    }
    let bytes = Header.text("netopt-record 1", fields)
    let path = try file(url, "record")
    try withLock(url, within: min(lockTimeout, Self.recordLockTimeout)) { () throws(NetOptError) in
      FileBytes.removeDrafts(of: path)
      try FileBytes.replace(path, with: bytes, mode: 0o600, as: "the record of the IP list", in: .list)
    }
  }

  // MARK: Files

  /// The path of a file for a configured list, which its refresh URL identifies. The file name is a digest of
  /// this URL and of `rules`, because a URL may be too long for a file name and may contain characters that a
  /// file name cannot contain.
  ///
  /// - Parameter kind: the extension of the file: `list`, `record` or `lock`.
  private func file(_ url: HTTPURL, _ kind: String) throws(NetOptError) -> String {
    do throws(CryptoError) {
      let digits = try Digest.of("\(url)\n\(rules)", .sha256).prefix(16).map { byte in
        (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
      return "\(directory)/\(digits.joined()).\(kind)"
    } catch {
      throw error.netOptError(in: .list)
    }
  }

  /// Reads a file.
  ///
  /// - Returns: `nil` when the file does not exist.
  private static func read(_ path: String, upTo limit: Int) throws(NetOptError) -> [UInt8]? {
    do throws(NetOptError) {
      return try FileBytes.read(path, upTo: limit, as: "the copy of the IP list", in: .list)
    } catch {
      if error.underlying?.code == ENOENT { return nil }
      throw error
    }
  }

  /// Creates the directory, and runs a closure under a lock that excludes other processes.
  private func withLock(
    _ url: HTTPURL, within lockTimeout: Duration, _ body: () throws(NetOptError) -> Void
  ) throws(NetOptError) {
    makeDirectory()
    let lock = try FileLock(
      try file(url, "lock"), .file, within: lockTimeout, as: "the copy of the IP list in the state directory",
      in: .list)
    defer { withExtendedLifetime(lock) {} }
    try body()
  }

  /// Creates the directory and its parents with mode 0700, as the XDG specification demands. Ignores errors:
  /// without the directory, `withLock` cannot open the lock file and throws.
  private func makeDirectory() {
    var path = directory.hasPrefix("/") ? "" : "."
    for part in directory.split(separator: "/") {
      path += "/" + part
      mkdir(path, 0o700)
    }
  }
}

// MARK: - Format

/// The header of a file in the store: a line with the kind of the file, then lines of the form `name: value`,
/// then an empty line.
private enum Header {
  /// Makes a header.
  static func text(_ kind: String, _ fields: [(String, String)]) -> [UInt8] {
    Array((kind + "\n" + fields.map { "\($0): \($1)\n" }.joined() + "\n").utf8)
  }

  /// Reads a header.
  ///
  /// - Returns: the values by name, and the bytes after the header; `nil` when the file is of another kind or
  ///   the header is incomplete.
  static func read(_ bytes: [UInt8], _ kind: String) -> (fields: [String: String], rest: ArraySlice<UInt8>)? {
    guard let end = bytes.firstRange(of: [0x0a, 0x0a]),
      let text = String(validating: bytes[..<end.lowerBound], as: UTF8.self), !SlowText.hasLongRun(text)
    else { return nil }
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    guard lines[0] == kind else { return nil }
    var fields: [String: String] = [:]
    for line in lines.dropFirst() {
      guard let colon = line.firstRange(of: ": ") else { return nil }
      fields[String(line[..<colon.lowerBound])] = String(line[colon.upperBound...])
    }
    return (fields, bytes[end.upperBound...])
  }
}

extension ListStore.Copy {
  /// The kind of the file, which is its first line.
  private static let kind = "netopt-list 1"

  /// The content of the file: a header with the lengths and a digest, then the list, then the signature.
  fileprivate var bytes: [UInt8] {
    var fields = [
      ("source", source), ("list", String(list.count)), ("signature", String(signature?.count ?? 0)),
      ("sha256", Self.digest(list + (signature ?? []))),
    ]
    if let tag { fields.append(("etag", tag)) }
    return Header.text(Self.kind, fields) + list + (signature ?? [])
  }

  /// Reads a copy from the content of its file. `nil` when the content is incomplete or damaged.
  fileprivate init?(_ bytes: [UInt8]) {
    guard let (fields, rest) = Header.read(bytes, Self.kind), let source = fields["source"],
      let count = fields["list"].flatMap({ Int($0) }), count >= 0,
      let signatureCount = fields["signature"].flatMap({ Int($0) }), signatureCount >= 0,
      count <= rest.count, rest.count - count == signatureCount,
      fields["sha256"] == Self.digest(Array(rest))
    else { return nil }
    self.source = source
    tag = fields["etag"]
    list = Array(rest.prefix(count))
    signature = signatureCount > 0 ? Array(rest.dropFirst(count)) : nil
  }

  /// The SHA-256 digest in hexadecimal.
  private static func digest(_ bytes: [UInt8]) -> String {
    let digest = (try? Digest.of(bytes, .sha256)) ?? []
    return digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
