import FoundationEssentials
import Glibc
package import NetOptCore
import NetOptCrypto
package import NetOptRouting

/// The last good copies of lists, and when they were looked for, in a directory that processes share.
///
/// A copy is one file with list and signature, so that no moment has the one without the other. Files are replaced as
/// `FileBytes.replace` does it, under a lock (flock(2)): a process that is killed leaves the old copy or the new one,
/// and of two processes the one with the older list does not win. Every method blocks until the disk has done it.
package struct ListStore: Sendable {
  /// A list as it came, which is verified again whenever it is loaded.
  package struct Copy: Hashable, Sendable {
    /// Where it was fetched. A list may say that newer issues are found elsewhere.
    package var source: String
    /// The server's mark for what it sent (RFC 9110, section 8.8.3).
    package var tag: String?
    /// The list.
    package var list: [UInt8]
    /// Its signature file.
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
  /// What the lists of this store are checked by, in words.
  private let rules: String
  private let patience: Duration
  private static let patienceForRecords = Duration.milliseconds(50)
  /// The dates that a record has, in seconds since 1970: up to the end of the year 9999. Others count as none.
  private static let dates: ClosedRange<Int64> = 0...253_402_300_799

  /// Makes a store. The directory is made when something is written, for the user alone.
  ///
  /// - Parameter reader: by whose rules copies are checked. What it takes no other reader need take, so those who trust
  ///   other keys, or none, have copies of their own.
  /// - Parameter patience: how long is waited for another process that writes there. Default: 5 s.
  package init(directory: String, for reader: ListReader, patience: Duration = FileLock.patience) {
    self.directory = directory
    self.patience = patience
    rules = (["\(reader.allowPrivateAddresses)"] + reader.trustedKeys.map(\.description).sorted())
      .joined(separator: "\n")
  }

  /// Where the copies are by the XDG base directory specification: `netopt/lists` in `$XDG_STATE_HOME`, or in
  /// `~/.local/state`. `nil` when the environment names no home.
  package static func directory(in environment: [String: String]) -> String? {
    StateDirectory.path(environment).map { "\($0)/lists" }
  }

  // MARK: Copies

  /// The last good copy of the list that a URL leads to.
  ///
  /// - Returns: `nil` when there is none.
  /// - Throws: `unreadableFile`, and `invalidList` when it is damaged.
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

  /// Keeps a copy.
  ///
  /// - Parameter isBetter: told the copy that is there, when there is a whole one; false to leave it.
  /// - Throws: `unwritableFile`.
  package func keep(
    _ copy: Copy, of url: HTTPURL, unless isBetter: (Copy) -> Bool
  ) throws(NetOptError) {
    let path = try file(url, "list")
    try withLock(url, within: patience) { () throws(NetOptError) in
      if let present = try? self.copy(of: url), isBetter(present) { return }
      FileBytes.removeDrafts(of: path)
      try FileBytes.replace(path, with: copy.bytes, mode: 0o600, as: "the copy of the IP list", in: .list)
    }
  }

  // MARK: Records

  /// When a list was looked for. What cannot be read counts as nothing.
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

  /// Keeps when a list was looked for. Another process that writes there is hardly waited for: what is lost is one attempt
  /// more at the next start.
  ///
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
    try withLock(url, within: min(patience, Self.patienceForRecords)) { () throws(NetOptError) in
      FileBytes.removeDrafts(of: path)
      try FileBytes.replace(path, with: bytes, mode: 0o600, as: "the record of the IP list", in: .list)
    }
  }

  // MARK: Files

  /// The file of a URL, by the rules of this store: its name is a digest, since a URL has characters and a length that
  /// names do not.
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

  /// - Returns: `nil` when there is no such file.
  private static func read(_ path: String, upTo limit: Int) throws(NetOptError) -> [UInt8]? {
    do throws(NetOptError) {
      return try FileBytes.read(path, upTo: limit, as: "the copy of the IP list", in: .list)
    } catch {
      if error.underlying?.code == ENOENT { return nil }
      throw error
    }
  }

  /// Does something while no other process does, and makes the directory before.
  private func withLock(
    _ url: HTTPURL, within patience: Duration, _ body: () throws(NetOptError) -> Void
  ) throws(NetOptError) {
    makeDirectory()
    let lock = try FileLock(
      try file(url, "lock"), .file, within: patience, as: "the copy of the IP list in the state directory",
      in: .list)
    defer { withExtendedLifetime(lock) {} }
    try body()
  }

  /// The specification asks for 0700.
  private func makeDirectory() {
    var path = directory.hasPrefix("/") ? "" : "."
    for part in directory.split(separator: "/") {
      path += "/" + part
      mkdir(path, 0o700)
    }
  }
}

// MARK: - Format

/// Lines of names and values under a line that says what the file is, up to an empty line.
private enum Header {
  static func text(_ kind: String, _ fields: [(String, String)]) -> [UInt8] {
    Array((kind + "\n" + fields.map { "\($0): \($1)\n" }.joined() + "\n").utf8)
  }

  /// - Returns: the values by their names, and what follows; `nil` when it is another kind of file, or cut off.
  static func read(_ bytes: [UInt8], _ kind: String) -> (fields: [String: String], rest: ArraySlice<UInt8>)? {
    guard let end = bytes.firstRange(of: [0x0a, 0x0a]),
      let text = String(validating: bytes[..<end.lowerBound], as: UTF8.self)
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
  private static let kind = "netopt-list 1"

  /// The file: a header with the lengths and a digest, the list, the signature.
  fileprivate var bytes: [UInt8] {
    var fields = [
      ("source", source), ("list", String(list.count)), ("signature", String(signature?.count ?? 0)),
      ("sha256", Self.digest(list + (signature ?? []))),
    ]
    if let tag { fields.append(("etag", tag)) }
    return Header.text(Self.kind, fields) + list + (signature ?? [])
  }

  /// - Returns: `nil` when it is not whole.
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

  private static func digest(_ bytes: [UInt8]) -> String {
    let digest = (try? Digest.of(bytes, .sha256)) ?? []
    return digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
