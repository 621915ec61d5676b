import NetOptCore

/// A component of a request or a response that a signature covers (RFC 9421, section 2): a header field, or a
/// derived component such as `@method`.
package struct SignatureComponent: Hashable, Sendable {
  /// The component as a structured item: its name and its parameters.
  let item: StructuredItem
  /// The name of a field in lower case, or the name of a derived component with its "@".
  let name: String
  /// The identifier of the component in the signature base: the quoted name and the parameters, for example
  /// `"@query-param";name="q"`.
  let identifier: String

  /// The names of the supported derived components.
  private static let derived: Set = [
    "@method", "@target-uri", "@authority", "@scheme", "@request-target", "@path", "@query", "@query-param",
    "@status",
  ]

  /// Makes a component without parameters.
  init(_ name: String) {
    self.name = name
    item = StructuredItem(.string(name))
    identifier = "\"\(name)\""
  }

  /// Reads a component from the list of components in Signature-Input.
  init(_ item: StructuredItem) throws(SigningFault) {
    guard case .string(let name) = item.value else {
      throw SigningFault(.malformedSignature, "a component is not a string")
    }
    self.item = item
    self.name = name
    do { identifier = try StructuredFieldSerializer.item(item) } catch {
      throw SigningFault(.malformedSignature, "a component is not valid: \(error.text)")
    }
    try check()
  }

  /// Reads a component as a person writes it. A component without parameters needs no quotes: `@method`,
  /// `content-type`, `example;sf`. The quoted form of a signature is read too: `"@query-param";name="q"`.
  package init(text: String) throws(SigningFault) {
    var quoted = text
    if !text.hasPrefix("\"") {
      let name = text.prefix { $0 != ";" }
      quoted = "\"\(name.loweredASCII)\"" + text[name.endIndex...]
    }
    let item: StructuredItem
    do { item = try StructuredFieldParser.item(quoted.utf8) } catch {
      throw SigningFault(.malformedSignature, "\"\(text)\" is not a component: \(error.text)")
    }
    try self.init(item)
  }

  /// Checks the name and the parameters of the component. Permitted parameters are `name` for `@query-param`,
  /// and `sf`, `bs` and `key` for a field.
  private func check() throws(SigningFault) {
    let keys = item.parameters.keys
    if name.hasPrefix("@") {
      guard Self.derived.contains(name) else {
        throw SigningFault(.malformedSignature, "there is no component \(name)")
      }
      let allowed = name == "@query-param" ? ["name"] : []
      guard keys == allowed else {
        throw SigningFault(
          .malformedSignature,
          "\(name) \(allowed.isEmpty ? "has no parameters here" : "has the parameter name")")
      }
      return
    }
    guard HeaderFields.isToken(name), !name.utf8.contains(where: { (0x41...0x5a).contains($0) }) else {
      throw SigningFault(.malformedSignature, "the component \(identifier) is not a field name in lower case")
    }
    // The flags `sf` and `bs` must be true. With other values (`sf=1`, `sf=2`), a signature could name one
    // component many times.
    let areUsable = item.parameters.entries.allSatisfy {
      switch ($0.key, $0.value) {
      case ("sf", .boolean(true)), ("bs", .boolean(true)), ("key", .string): true
      default: false
      }
    }
    guard areUsable, keys.count <= 1 || !keys.contains("bs") else {
      throw SigningFault(
        .malformedSignature, "the component \(identifier) has parameters that are not allowed here")
    }
  }

  /// Appends the value of the component to a signature base (RFC 9421, sections 2.1 and 2.2). With mistakes,
  /// appends the value as a signer that makes these mistakes writes it.
  func appendValue(
    of parsed: inout ParsedRequest, to out: inout [UInt8], _ mistakes: Mistakes
  ) throws(SigningFault) {
    let request = parsed.request
    if name.hasPrefix("@"), (name == "@status") != (request.status != nil) {
      throw SigningFault(
        .malformedSignature, "a \(request.status == nil ? "request" : "response") has no component \(name)")
    }
    switch name {
    case "@status": out.append(decimal: Int64(request.status ?? 0))
    case "@method":
      out.append(text: mistakes.contains(.methodLowerCase) ? request.method.loweredASCII : request.method)
    case "@authority": request.appendAuthority(to: &out, keepsPort: mistakes.contains(.portKept))
    case "@scheme": out.append(text: request.scheme.rawValue)
    case "@target-uri":
      out.append(text: request.scheme.rawValue + "://")
      request.appendAuthority(to: &out, keepsPort: mistakes.contains(.portKept))
      appendTarget(request, to: &out, mistakes)
    case "@request-target": appendTarget(request, to: &out, mistakes)
    case "@path": appendPath(request, to: &out, mistakes)
    case "@query":
      out.append(0x3f)
      if !mistakes.contains(.queryLeftOut) { Self.append(query: request.query ?? "", to: &out, mistakes) }
    case "@query-param": try appendParameter(&parsed, to: &out)
    default: try appendField(&parsed, to: &out)
    }
  }

  /// Appends path and query as the request line has them, or as a signer with the given mistakes writes them.
  private func appendTarget(_ request: SigningRequest, to out: inout [UInt8], _ mistakes: Mistakes) {
    appendPath(request, to: &out, mistakes)
    if let query = request.query, !mistakes.contains(.queryLeftOut) {
      out.append(0x3f)
      Self.append(query: query, to: &out, mistakes)
    }
  }

  /// Appends the query as the request line has it, or as a signer with the given mistakes writes it.
  private static func append(query: String, to out: inout [UInt8], _ mistakes: Mistakes) {
    if mistakes.isEmpty { return PercentEncoding.appendTarget(query, to: &out) }
    var text: [UInt8] = []
    PercentEncoding.appendTarget(query, to: &text)
    if mistakes.contains(.emptiesDropped) {
      let kept = text.split(separator: 0x26).filter { $0.contains(0x3d) && $0.last != 0x3d }
      text = Array(kept.joined(separator: [0x26]))
    }
    if mistakes.contains(.plusForSpace) {
      text = Array(
        text.split(separator: Array("%20".utf8), omittingEmptySubsequences: false).joined(separator: [0x2b]))
    }
    if mistakes.contains(.lowerCaseHex) { PercentEncoding.lowerHex(&text) }
    if mistakes.contains(.notEncoded) { text = PercentEncoding.decoded(text) }
    if mistakes.contains(.encodedTwice) { text = PercentEncoding.again(text) }
    out += text
  }

  /// Appends the path as the request line has it, or as a signer with the given mistakes writes it.
  private func appendPath(_ request: SigningRequest, to out: inout [UInt8], _ mistakes: Mistakes) {
    let path =
      mistakes.contains(.pathNormalised) ? PathNormalisation.normalised(request.path) : request.path
    if mistakes.contains(.pathNotNormalised) {
      out.append(text: path)
      return
    }
    var text: [UInt8] = []
    PercentEncoding.appendTarget(path, to: &text)
    if mistakes.contains(.lowerCaseHex) { PercentEncoding.lowerHex(&text) }
    out += mistakes.contains(.pathEncodedTwice) ? PercentEncoding.again(text) : text
  }

  /// Appends the value of the query parameter that the component names.
  private func appendParameter(
    _ parsed: inout ParsedRequest, to out: inout [UInt8]
  ) throws(SigningFault) {
    guard case .string(let wanted) = item.parameters["name"] else {
      throw SigningFault(.malformedSignature, "the name of \(identifier) is not a string")
    }
    guard let parameter = parsed.parameter(wanted) else {
      throw SigningFault(.missingField, "the query does not have \(identifier)")
    }
    guard parameter.count == 1 else {
      throw SigningFault(
        .malformedSignature, "the query has \(identifier) more than once, which cannot be signed")
    }
    PercentEncoding.append(parameter.value, to: &out, .form)
  }

  /// Appends the value of the field that the component names.
  private func appendField(_ parsed: inout ParsedRequest, to out: inout [UInt8]) throws(SigningFault) {
    let request = parsed.request
    guard request.headers.contains(name: name) else {
      throw SigningFault(.missingField, "the field \(name) is to be signed but is missing")
    }
    if item.parameters["bs"] == .boolean(true) {
      let values = request.headers.values(of: name).map { value in
        ":" + Base64.text(Array(ByteClass.trimmed(value.utf8))) + ":"
      }
      out.append(text: values.joined(separator: ", "))
    } else if case .string(let key) = item.parameters["key"] {
      let found = try structured { () throws(StructuredFieldFault) in try parsed.member(key, of: name) }
      guard let member = found else {
        throw SigningFault(.missingField, "the field \(name) has no member \(key)")
      }
      out.append(
        text: try structured { () throws(StructuredFieldFault) in
          try StructuredFieldSerializer.member(member)
        })
    } else if item.parameters["sf"] == .boolean(true) {
      out.append(text: try serialised(request.headers[name] ?? ""))
    } else if item.parameters.keys.isEmpty {
      try request.appendValue(of: name, to: &out)
    } else {
      throw SigningFault(
        .malformedSignature, "the component \(identifier) has parameters that are not allowed here")
    }
  }

  /// Parses the value of a structured field and writes it in the strict form (the parameter `sf`). The value
  /// does not show whether it is a list, a dictionary or an item, so the function reads a list if it can, and
  /// otherwise a dictionary. An item is a list of one member. Some dictionaries, such as `a, b`, are valid
  /// lists too. The strict form of both is the same, unless the dictionary has a key twice.
  private func serialised(_ value: String) throws(SigningFault) -> String {
    if let list = try? StructuredFieldParser.list(value.utf8) {
      return try structured { () throws(StructuredFieldFault) in try StructuredFieldSerializer.list(list) }
    }
    return try structured { () throws(StructuredFieldFault) in
      try StructuredFieldSerializer.dictionary(try StructuredFieldParser.dictionary(value.utf8))
    }
  }

  /// Runs the work. If it throws a `StructuredFieldFault`, throws `malformedRequest` in its place.
  private func structured<Result>(
    _ work: () throws(StructuredFieldFault) -> Result
  ) throws(SigningFault) -> Result {
    do { return try work() } catch {
      throw SigningFault(.malformedRequest, "the field \(name) is not a structured field: \(error.text)")
    }
  }
}

extension PercentEncoding {
  /// Writes the hexadecimal digits of percent-encodings in lower case.
  fileprivate static func lowerHex(_ text: inout [UInt8]) {
    for index in text.indices where text[index] == 0x25 {
      for digit in text.indices.clamped(to: (index + 1)..<(index + 3)) {
        text[digit] = ByteClass.lowered(text[digit])
      }
    }
  }

  /// Encodes a percent-encoded text once more: replaces each "%" by "%25".
  fileprivate static func again(_ text: [UInt8]) -> [UInt8] {
    text.flatMap { $0 == 0x25 ? Array("%25".utf8) : [$0] }
  }

  /// Appends a path or query of a request line. Encodes the bytes that a request line cannot contain; all
  /// other bytes stay as they are.
  static func appendTarget(_ text: String, to out: inout [UInt8]) {
    for byte in text.utf8 {
      if byte > 0x20, byte < 0x7f {
        out.append(byte)
      } else {
        out.append(0x25)
        out.append(Hex.upper[Int(byte >> 4)])
        out.append(Hex.upper[Int(byte & 15)])
      }
    }
  }
}
