import NetOptCore

/// A place in a JSON document, written as RFC 9535 does: `$.hosts["a.example"].endpoints[3]`.
struct JSONPath: Hashable, CustomStringConvertible {
  private(set) var description = "$"

  /// The path of the member with this name.
  func key(_ name: String) -> JSONPath {
    let isPlain =
      !name.isEmpty && name.utf8.allSatisfy { ($0 | 0x20) >= 0x61 && ($0 | 0x20) <= 0x7a || $0 == 0x5f }
    var path = self
    path.description += isPlain ? "." + name : "[\"" + Self.quoted(name) + "\"]"
    return path
  }

  /// The path of the element with this index.
  func index(_ index: Int) -> JSONPath {
    var path = self
    path.description += "[\(index)]"
    return path
  }

  /// The name as it stands between quotes: printable, and with `"` and `\` escaped.
  private static func quoted(_ name: String) -> String {
    let shown = name.printable(200)
    guard shown.utf8.contains(where: { $0 == 0x22 || $0 == 0x5c }) else { return shown }
    return shown.reduce(into: "") { $0 += $1 == "\"" || $1 == "\\" ? "\\\($1)" : String($1) }
  }
}
