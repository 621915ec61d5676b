/// A bare item: the value of an item or of a parameter in a structured field (RFC 9651, section 3.3).
package enum BareItem: Hashable, Sendable {
  /// A whole number of up to 15 digits.
  case integer(Int64)
  /// A decimal number in thousandths. It has up to 12 digits before the decimal point and 3 after it.
  case decimal(thousandths: Int64)
  /// A string of visible ASCII characters and spaces.
  case string(String)
  /// A token: a word that is written without quotes.
  case token(String)
  /// A byte sequence, which is written in base64.
  case bytes([UInt8])
  /// True or false.
  case boolean(Bool)
  /// A date in seconds since 1970.
  case date(Int64)
  /// A text for people, with any Unicode characters.
  case displayString(String)
}

/// A map that keeps the order of its keys. Each key occurs once.
package struct StructuredMap<Value: Hashable & Sendable>: Hashable, Sendable {
  /// A key and its value.
  package struct Entry: Hashable, Sendable {
    package let key: String
    package var value: Value
  }

  /// The entries in order.
  package private(set) var entries: [Entry] = []
  /// The index in `entries` of each key.
  private var positions: [String: Int] = [:]

  /// Makes an empty map.
  package init() {}

  /// The value of a key. Setting the value of a new key appends the key. Setting the value of a known key
  /// keeps the position of the key (RFC 9651, section 4.2.2). Setting `nil` does nothing.
  package subscript(key: String) -> Value? {
    get { positions[key].map { entries[$0].value } }
    set {
      guard let newValue else { return }
      if let position = positions[key] {
        entries[position].value = newValue
      } else {
        positions[key] = entries.count
        entries.append(Entry(key: key, value: newValue))
      }
    }
  }

  /// The keys in order.
  package var keys: [String] { entries.map(\.key) }
}

/// Parameters of an item or an inner list (RFC 9651, section 3.1.2).
package typealias Parameters = StructuredMap<BareItem>

/// An item with its parameters (RFC 9651, section 3.3).
package struct StructuredItem: Hashable, Sendable {
  package var value: BareItem
  package var parameters: Parameters

  /// Makes an item.
  package init(_ value: BareItem, _ parameters: Parameters = Parameters()) {
    self.value = value
    self.parameters = parameters
  }
}

/// An inner list with its parameters (RFC 9651, section 3.1.1).
package struct InnerList: Hashable, Sendable {
  package var items: [StructuredItem]
  package var parameters: Parameters

  /// Makes an inner list.
  package init(_ items: [StructuredItem], _ parameters: Parameters = Parameters()) {
    self.items = items
    self.parameters = parameters
  }
}

/// A member of a list or a dictionary.
package enum StructuredMember: Hashable, Sendable {
  case item(StructuredItem)
  case innerList(InnerList)
}

/// A list (RFC 9651, section 3.1).
package typealias StructuredList = [StructuredMember]

/// A dictionary (RFC 9651, section 3.2).
package typealias StructuredDictionary = StructuredMap<StructuredMember>

/// Why a text is not a structured field, or why a value cannot be written as one.
package struct StructuredFieldFault: Error, Hashable, Sendable {
  /// The offset of the byte at which a text breaks the rule, counted from 0; `nil` when the fault is in a
  /// value to write.
  package let offset: Int?
  /// The broken rule, in words.
  package let rule: String

  /// The offset and the rule in words, for example `byte 12: a key must begin with a lower-case letter or *`.
  package var text: String { offset.map { "byte \($0): \(rule)" } ?? rule }
}
