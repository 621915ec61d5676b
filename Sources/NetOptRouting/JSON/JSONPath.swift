import NetOptCore

/// A place in a JSON document, written as RFC 9535 does: `$.hosts["a.example"].endpoints[3]`.
package struct JSONPath: Hashable, Sendable, CustomStringConvertible {
  /// The path as text. `$` is the root.
  package private(set) var description = "$"

  /// Makes the path of the root.
  package init() {}

  /// Returns the path of the member with a name in the object at this path.
  package func key(_ name: String) -> JSONPath {
    var path = self
    path.description += ByteClass.isIdentifier(name) ? "." + name : "[\"" + Self.quoted(name) + "\"]"
    return path
  }

  /// Returns the path of the element with an index in the array at this path.
  package func index(_ index: Int) -> JSONPath {
    var path = self
    path.description += "[\(index)]"
    return path
  }

  /// The name for use between quotes: printable, shortened when it is long, and with `"` and `\` escaped.
  private static func quoted(_ name: String) -> String {
    let shown = name.printable(200)
    guard shown.utf8.contains(where: { $0 == 0x22 || $0 == 0x5c }) else { return shown }
    return shown.reduce(into: "") { $0 += $1 == "\"" || $1 == "\\" ? "\\\($1)" : String($1) }
  }
}
