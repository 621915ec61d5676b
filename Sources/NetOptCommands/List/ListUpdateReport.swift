import NetOptCore
import NetOptRouting

/// The report of `netopt iplist update`.
struct ListUpdateReport: Sendable {
  /// An endpoint that only one of the two lists contains: it was added or removed.
  private struct Change: Hashable {
    let host: String
    let address: IPAddress

    var json: JSONValue { ["host": .string(host), "ip": .string(address.description)] }
  }

  private let file: String
  private let url: HTTPURL
  /// The list in the file before the update.
  private let old: EndpointList
  /// The list in the file after the update. Equals `old` if the file did not change.
  private let new: EndpointList
  /// Why the update failed; `nil` if it did not.
  private let error: NetOptError?
  /// Whether the command replaced the file.
  private let isUpdated: Bool

  /// Creates the report.
  ///
  /// - Parameters:
  ///   - old: the list in the file before the update.
  ///   - result: the list that replaced the old list; `nil` if the file is unchanged, because its list is at
  ///     least as new; or the error.
  init(file: String, url: HTTPURL, old: EndpointList, result: Result<EndpointList?, NetOptError>) {
    self.file = file
    self.url = url
    self.old = old
    switch result {
    case .success(let list):
      new = list ?? old
      isUpdated = list != nil
      error = nil
    case .failure(let error):
      new = old
      isUpdated = false
      self.error = error
    }
  }

  private var added: [Change] { Self.changes(in: new, notIn: old) }
  private var removed: [Change] { Self.changes(in: old, notIn: new) }

  /// Returns the endpoints of `list` that `other` does not have, sorted by host.
  private static func changes(in list: EndpointList, notIn other: EndpointList) -> [Change] {
    func all(_ list: EndpointList) -> [Change] {
      list.hosts.sorted { $0.key < $1.key }.flatMap { host, entry in
        entry.endpoints.map { Change(host: host, address: $0.address) }
      }
    }
    let others = Set(all(other))
    return all(list).filter { !others.contains($0) }
  }

  /// The object that `iplist update --json` prints: docs/schemas/iplist-update.schema.json.
  var json: JSONValue {
    var json: JSONValue = [
      "schema_version": 1, "file": .string(file), "url": .string(url.shown),
      "updated": .bool(isUpdated),
      "serial": ["before": .integer(old.serial), "after": .integer(new.serial)],
      "added": .array(added.map(\.json)), "removed": .array(removed.map(\.json)),
    ]
    if let error { json.append("error", error.json) }
    return json
  }

  /// The report as text. Empty if the update failed: the command prints the error on standard error.
  var text: String {
    if error != nil { return "" }
    guard isUpdated else {
      return Text.lines([Text.printable("\(file): serial \(old.serial) is the newest")])
    }
    let head = "\(file): serial \(old.serial) replaced by serial \(new.serial)"
    let changes =
      added.map { "  + \($0.host) \($0.address)" } + removed.map { "  - \($0.host) \($0.address)" }
    return Text.lines([Text.printable(head)] + changes.map(Text.printable))
  }
}
