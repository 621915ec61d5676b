import NetOptCore

extension SigningRequest {
  /// Appends the value of a field, without leading and trailing white space. If the field is repeated, joins
  /// its values in their order.
  ///
  /// - Parameters:
  ///   - name: the name of the field. Case does not matter.
  ///   - joiner: the text between the values of a repeated field.
  ///   - isCollapsed: whether each run of spaces within a value becomes one space.
  ///   - allowsUTF8: whether a value may have bytes other than visible ASCII characters, spaces and tabs.
  /// - Returns: whether the request has the field. If not, the function appends nothing.
  /// - Throws: `malformedRequest` for a value with such other bytes, unless `allowsUTF8` is true.
  @discardableResult
  func appendValue(
    of name: String, to out: inout [UInt8], joiner: StaticString = ", ", isCollapsed: Bool = false,
    allowsUTF8: Bool = false
  ) throws(SigningFault) -> Bool {
    var isFirst = true
    for field in headers where ByteClass.isSameName(field.name, name) {
      if !isFirst { out.append(text: joiner) }
      isFirst = false
      var value = field.value
      let isFine = value.withUTF8 { value in
        let trimmed = ByteClass.trimmed(value)
        if isCollapsed { Self.collapse(trimmed, into: &out) } else { out += trimmed }
        return allowsUTF8 || ByteClass.isPlain(trimmed)
      }
      guard isFine else {
        throw SigningFault(.malformedRequest, "the value of \(name) has non-ASCII bytes")
      }
    }
    return !isFirst
  }

  /// Appends a value in which each run of spaces becomes one space.
  private static func collapse(_ value: Slice<UnsafeBufferPointer<UInt8>>, into out: inout [UInt8]) {
    var wasSpace = false
    for byte in value {
      let isSpace = byte == 0x20
      if !(isSpace && wasSpace) { out.append(byte) }
      wasSpace = isSpace
    }
  }

  /// The value of a field that may occur only once; `nil` if the request does not have the field.
  ///
  /// - Throws: `malformedSignature` when the field occurs more than once.
  func onlyValue(of name: String) throws(SigningFault) -> String? {
    var value: String?
    for field in headers where ByteClass.isSameName(field.name, name) {
      guard value == nil else { throw SigningFault(.malformedSignature, "there are several \(name) fields") }
      value = field.value
    }
    return value
  }
}

/// The parameters in the value of an Authorization field: `name=value` pairs, separated by commas.
struct CredentialParameters {
  /// The values of the parameters, by name.
  private var values: [String: String] = [:]

  /// Reads the parameters.
  ///
  /// - Parameters:
  ///   - text: the value of the field after the name of the scheme.
  ///   - names: the permitted names. Each must occur exactly once.
  /// - Throws: `malformedSignature` when a part is not `name=value`, or when a name is not permitted, missing
  ///   or repeated.
  init(_ text: Substring, names: [String]) throws(SigningFault) {
    for piece in text.utf8.split(separator: 0x2c, omittingEmptySubsequences: false) {
      let pair = ByteClass.trimmed(piece)
      guard let mark = pair.firstIndex(of: 0x3d) else {
        throw SigningFault(.malformedSignature, "Authorization has a part that is not name=value")
      }
      let name = String(Substring(pair[..<mark]))
      guard names.contains(name) else {
        throw SigningFault(
          .malformedSignature,
          "Authorization has a parameter other than \(names.joined(separator: ", "))")
      }
      guard values[name] == nil else {
        throw SigningFault(.malformedSignature, "Authorization has \(name) twice")
      }
      values[name] = String(Substring(pair[pair.index(after: mark)...]))
    }
    for name in names where values[name] == nil {
      throw SigningFault(.malformedSignature, "Authorization lacks \(name)")
    }
  }

  /// The value of a parameter; empty if the name is not one of the permitted names.
  subscript(name: String) -> String { values[name] ?? "" }
}
