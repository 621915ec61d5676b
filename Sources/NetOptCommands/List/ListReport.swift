import FoundationEssentials
import NetOptCore
import NetOptRouting

/// The report of `netopt iplist check`.
struct ListReport: Sendable {
  private let file: String
  /// The list; `nil` if it has faults or the file could not be read.
  private let list: EndpointList?
  private let faults: [ListFault]
  /// Why the file could not be read; `nil` if it was read.
  private let error: NetOptError?

  /// Creates the report of a list that was read.
  ///
  /// - Parameters:
  ///   - list: the list. The report ignores it if there are faults.
  ///   - faults: the broken rules, with the places in the file. Empty for a valid list.
  init(file: String, list: EndpointList?, faults: [ListFault]) {
    self.file = file
    self.list = faults.isEmpty ? list : nil
    self.faults = faults
    error = nil
  }

  /// Creates the report of a file that could not be read.
  init(file: String, error: NetOptError) {
    self.file = file
    list = nil
    faults = []
    self.error = error
  }

  /// The name of the file in text output: "standard input" for `-`.
  var name: String { file == "-" ? "standard input" : file }

  /// The object that `iplist check --json` prints: docs/schemas/iplist-check.schema.json.
  var json: JSONValue {
    var json: JSONValue = [
      "schema_version": 1, "file": .string(file), "valid": .bool(list != nil),
      "list": list.map(summary) ?? nil,
      "faults": .array(faults.map { ["path": .string($0.path), "message": .string($0.message)] }),
    ]
    if let error { json.append("error", error.json) }
    return json
  }

  private func summary(_ list: EndpointList) -> JSONValue {
    [
      "serial": .integer(list.serial), "issued": .optional(list.issued?.formatted(.iso8601)),
      "expires": .optional(list.expires?.formatted(.iso8601)), "hosts": .integer(Int64(list.hosts.count)),
      "endpoints": .integer(Int64(list.endpointCount)),
    ]
  }

  /// The report as text: one line for a valid list, or one line for each fault. Empty if the file could not
  /// be read.
  var text: String {
    guard let list else {
      return Text.lines(faults.map { Text.printable("\(name): \($0.path): \($0.message)") })
    }
    let expiry = list.expires.map { "expires \($0.formatted(.iso8601))" } ?? "does not expire"
    return Text.lines([
      "\(name): valid, serial \(list.serial), \(Text.count(list.hosts.count, "host")), "
        + "\(Text.count(list.endpointCount, "endpoint")), \(expiry)"
    ])
  }
}
