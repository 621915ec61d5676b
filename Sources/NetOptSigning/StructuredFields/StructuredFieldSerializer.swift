import NetOptCore

/// Writes structured fields (RFC 9651, section 4.1).
package enum StructuredFieldSerializer {
  /// Writes a list. An empty list gives an empty text; the caller then sends no field.
  package static func list(_ list: StructuredList) throws(StructuredFieldFault) -> String {
    var texts: [String] = []
    for value in list { texts.append(try member(value)) }
    return texts.joined(separator: ", ")
  }

  /// Writes a dictionary. An empty dictionary gives an empty text; the caller then sends no field.
  package static func dictionary(_ dictionary: StructuredDictionary) throws(StructuredFieldFault) -> String {
    var texts: [String] = []
    for entry in dictionary.entries {
      let key = try key(entry.key)
      if case .item(let item) = entry.value, item.value == .boolean(true) {
        texts.append(key + (try parameters(item.parameters)))
      } else {
        texts.append(key + "=" + (try member(entry.value)))
      }
    }
    return texts.joined(separator: ", ")
  }

  /// Writes an item.
  package static func item(_ item: StructuredItem) throws(StructuredFieldFault) -> String {
    try bareItem(item.value) + parameters(item.parameters)
  }

  /// Writes a member of a list or a dictionary.
  package static func member(_ member: StructuredMember) throws(StructuredFieldFault) -> String {
    switch member {
    case .item(let value): try item(value)
    case .innerList(let list): try innerList(list)
    }
  }

  /// Writes an inner list.
  package static func innerList(_ list: InnerList) throws(StructuredFieldFault) -> String {
    var texts: [String] = []
    for value in list.items { texts.append(try item(value)) }
    return "(" + texts.joined(separator: " ") + ")" + (try parameters(list.parameters))
  }

  /// Writes parameters, each with a ";" before it. A parameter that is true is written without its value.
  static func parameters(_ parameters: Parameters) throws(StructuredFieldFault) -> String {
    var text = ""
    for entry in parameters.entries {
      text += ";" + (try key(entry.key))
      if entry.value != .boolean(true) { text += "=" + (try bareItem(entry.value)) }
    }
    return text
  }

  /// The fault of a value that breaks a rule and cannot be written. It has no offset.
  private static func fault(_ rule: String) -> StructuredFieldFault {
    StructuredFieldFault(offset: nil, rule: rule)
  }

  /// Whether a text is a key (RFC 9651, section 3.1.2).
  static func isKey(_ text: String) -> Bool {
    let first = text.utf8.first ?? 0
    return ((0x61...0x7a).contains(first) || first == 0x2a)
      && text.utf8.allSatisfy(StructuredFieldParser.isKeyByte)
  }

  /// Returns the key unchanged, and throws if it is not a valid key.
  private static func key(_ key: String) throws(StructuredFieldFault) -> String {
    guard isKey(key) else {
      throw fault(
        "a key can have only lower-case letters, digits, _, -, . and *, and must begin with a letter or *")
    }
    return key
  }

  private static func bareItem(_ item: BareItem) throws(StructuredFieldFault) -> String {
    switch item {
    case .integer(let number): return try integer(number)
    case .decimal(let thousandths): return try decimal(thousandths)
    case .string(let text): return try string(text)
    case .token(let text):
      let first = text.utf8.first ?? 0
      guard (0x61...0x7a).contains(first | 0x20) || first == 0x2a,
        text.utf8.allSatisfy(StructuredFieldParser.isTokenByte)
      else { throw fault("a token must begin with a letter or *, and must not have spaces") }
      return text
    case .bytes(let bytes): return ":" + Base64.text(bytes) + ":"
    case .boolean(let value): return value ? "?1" : "?0"
    case .date(let seconds): return "@" + (try integer(seconds))
    case .displayString(let text): return displayString(text)
    }
  }

  private static func integer(_ number: Int64) throws(StructuredFieldFault) -> String {
    guard number.magnitude <= 999_999_999_999_999 else {
      throw fault("an integer can have at most 15 digits")
    }
    return String(number)
  }

  private static func decimal(_ thousandths: Int64) throws(StructuredFieldFault) -> String {
    guard thousandths.magnitude <= 999_999_999_999_999 else {
      throw fault("a decimal can have at most 12 digits before its point")
    }
    let magnitude = thousandths.magnitude
    let digits = String(magnitude % 1000)
    var fraction = String(repeating: "0", count: 3 - digits.count) + digits
    while fraction.hasSuffix("0"), fraction.count > 1 { fraction.removeLast() }
    return (thousandths < 0 ? "-" : "") + "\(magnitude / 1000).\(fraction)"
  }

  private static func string(_ text: String) throws(StructuredFieldFault) -> String {
    guard text.utf8.allSatisfy({ (0x20...0x7e).contains($0) }) else {
      throw fault("a string can have only visible ASCII and spaces")
    }
    var out: [UInt8] = [0x22]
    for byte in text.utf8 {
      if byte == 0x22 || byte == 0x5c { out.append(0x5c) }
      out.append(byte)
    }
    out.append(0x22)
    return String(decoding: out, as: UTF8.self)
  }

  private static func displayString(_ text: String) -> String {
    var out = Array("%\"".utf8)
    for byte in text.utf8 {
      if byte == 0x25 || byte == 0x22 || byte < 0x20 || byte > 0x7e {
        out.append(0x25)
        out.append(hex: [byte])
      } else {
        out.append(byte)
      }
    }
    out.append(0x22)
    return String(decoding: out, as: UTF8.self)
  }
}
